//! Pages of a column, each checked before its values are read: a page of a few bytes can claim any number of them.
//!
//! Pages without values are left out, as writers with small pages make them and the reader takes one for the end of the column.

use parquet::basic::Type as Physical;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescriptor;

/// Bound on the values and nulls of a page: repeated ones take next to nothing in it, but 4 bytes each once they are read.
const MAX_VALUES: usize = 1 << 26;

pub(super) struct Checked {
    pages: Box<dyn PageReader>,
    /// Smallest number of bytes of a value.
    n_value_bytes: usize,
}

impl Checked {
    pub(super) fn new(pages: Box<dyn PageReader>, column: &ColumnDescriptor) -> Checked {
        let n_value_bytes = match column.physical_type() {
            Physical::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0).max(1),
            // The length of text is 4 bytes of its own.
            _ => 4,
        };
        Checked { pages, n_value_bytes }
    }

    /// Skips pages without values, so that the next one has some, or there is none.
    fn skip_empty(&mut self) -> Result<()> {
        while let Some(next) = self.pages.peek_next_page()? {
            if next.is_dict || next.num_levels != Some(0) {
                break;
            }
            self.pages.skip_next_page()?;
        }
        Ok(())
    }
}

impl PageReader for Checked {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.skip_empty()?;
        let page = self.pages.get_next_page()?;
        page.as_ref()
            .map_or(Ok(()), |page| check(page, self.n_value_bytes))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.skip_empty()?;
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.skip_empty()?;
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        // The end of the column is a boundary, and empty pages may come before it.
        self.skip_empty()?;
        self.pages.at_record_boundary()
    }
}

impl Iterator for Checked {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

fn check(page: &Page, n_value_bytes: usize) -> Result<()> {
    let most = match page {
        // The values of a dictionary are stored one by one, so their bytes bound their number.
        Page::DictionaryPage { buf, .. } => buf.len() / n_value_bytes,
        Page::DataPage { .. } | Page::DataPageV2 { .. } => MAX_VALUES,
    };
    if page.num_values() as usize > most {
        let reported = format!("a page says that it has more than {most} values");
        return Err(ParquetError::General(reported));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::*;

    #[test]
    fn rejects_a_page_with_more_values_than_fit() {
        let dictionary = |num_values| Page::DictionaryPage {
            buf: vec![0; 103].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        for (n_value_bytes, most) in [(4, 25), (1, 103)] {
            assert!(check(&dictionary(most), n_value_bytes).is_ok());
            assert!(check(&dictionary(most + 1), n_value_bytes).is_err());
        }
        let values = |num_values| Page::DataPage {
            buf: vec![0; 5].into(),
            num_values,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        assert!(check(&values(1 << 26), 4).is_ok());
        assert!(check(&values((1 << 26) + 1), 4).is_err());
    }
}
