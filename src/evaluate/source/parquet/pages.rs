//! Pages of a column, each looked at before its values are read: a page of a few bytes can say any number of them.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Values and nulls that a page may hold: those that repeat take next to nothing in it, and 4 bytes each once they are read.
const MAX_VALUES: usize = 1 << 26;

pub(super) struct Checked(pub Box<dyn PageReader>);

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.0.get_next_page()?;
        page.as_ref().map_or(Ok(()), check)?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.0.at_record_boundary()
    }
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

fn check(page: &Page) -> Result<()> {
    let most = match page {
        // A value takes 4 bytes at least.
        Page::DictionaryPage { buf, .. } => buf.len() / 4,
        Page::DataPage { .. } | Page::DataPageV2 { .. } => MAX_VALUES,
    };
    if page.num_values() as usize > most {
        let told = format!("a page says that it has more than {most} values");
        return Err(ParquetError::General(told));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::*;

    #[test]
    fn a_page_has_no_more_values_than_fit() {
        let dictionary = |num_values| Page::DictionaryPage {
            buf: vec![0; 103].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        assert!(check(&dictionary(25)).is_ok());
        assert!(check(&dictionary(26)).is_err());
        let values = |num_values| Page::DataPage {
            buf: vec![0; 5].into(),
            num_values,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        assert!(check(&values(1 << 26)).is_ok());
        assert!(check(&values((1 << 26) + 1)).is_err());
    }
}
