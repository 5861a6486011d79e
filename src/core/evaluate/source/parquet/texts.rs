//! Texts of a column as numbers, so that a text that repeats is stored and looked up once.
//!
//! ```text
//! dictionary page   i1 i2 i3        0 1 2     the dictionary of a column of numbers
//! data page         2 0 0 1   ──▶   2 0 0 1   unchanged
//! data page         i9 i8           3 4       texts without a dictionary
//! ```
//! The reader of the crate copies each text with a counter of its users. This one passes it the same pages as a column of numbers,
//! and keeps the pages with the texts.

use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::{Encoding, Repetition, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, Type};

/// Bytes of a length in front of a text, and of a number.
const N_PREFIX: usize = 4;

/// Page of texts.
struct TextPage {
    is_dictionary: bool,
    /// Number of the first text.
    first: u32,
    bytes: ByteArray,
    /// Place of each text.
    places: Vec<Range<u32>>,
}

/// Texts of the pages that are in use, by number.
#[derive(Default)]
pub(super) struct Texts {
    /// The dictionary comes first, if there is one.
    pages: Vec<TextPage>,
    n_in_dictionary: u32,
    found: PagesFound,
}

/// Pages that were found since they were last taken.
type PagesFound = Arc<Mutex<Vec<TextPage>>>;

impl Texts {
    /// Returns whether the texts of a column chunk are stored in ways that are read here.
    pub(super) fn can_read(chunk: &ColumnChunkMetaData) -> bool {
        chunk.encodings().all(|encoding| match encoding {
            Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY | Encoding::RLE => true,
            #[expect(deprecated, reason = "old writers use it for levels")]
            Encoding::BIT_PACKED => true,
            _ => false,
        })
    }

    /// Returns the pages as pages of numbers, and the description of a column of numbers.
    ///
    /// # Errors
    /// Never, for a column that has been opened.
    pub(super) fn numbers(
        &self,
        pages: Box<dyn PageReader>,
        column: &ColumnDescriptor,
    ) -> Result<(ColumnDescPtr, Box<dyn PageReader>)> {
        let of_numbers = Type::primitive_type_builder(column.name(), Physical::INT32)
            .with_repetition(Repetition::REQUIRED)
            .build()?;
        let levels = Levels {
            definition: column.max_def_level(),
            repetition: column.max_rep_level(),
        };
        let of_numbers = ColumnDescriptor::new(
            Arc::new(of_numbers),
            levels.definition,
            levels.repetition,
            column.path().clone(),
        );
        let pages = NumberPages {
            pages,
            levels,
            n_texts: 0,
            found: Arc::clone(&self.found),
        };
        Ok((Arc::new(of_numbers), Box::new(pages)))
    }

    /// Takes the pages that were read with the next rows. Of the earlier ones, the texts of the last page may still be needed.
    pub(super) fn take_pages(&mut self) {
        let found = mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner));
        if found.is_empty() {
            return;
        }
        let n_dictionaries = usize::from(self.n_in_dictionary > 0);
        if self.pages.len() > n_dictionaries + 1 {
            self.pages.drain(n_dictionaries..self.pages.len() - 1);
        }
        self.pages.extend(found);
        if let Some(dictionary) = self.pages.first().filter(|page| page.is_dictionary) {
            self.n_in_dictionary = dictionary.places.len() as u32;
        }
    }

    /// Returns whether a text is in the dictionary.
    #[inline]
    pub(super) fn is_in_dictionary(&self, number: i32) -> bool {
        number.cast_unsigned() < self.n_in_dictionary
    }

    /// Returns a text.
    #[inline]
    pub(super) fn text(&self, number: i32) -> &[u8] {
        let number = number.cast_unsigned();
        let page = match number < self.n_in_dictionary {
            true => self.pages.first(),
            false => self.pages.iter().rev().find(|page| page.first <= number),
        };
        let text = page.and_then(|page| {
            let place = page.places.get((number - page.first) as usize)?;
            page.bytes.data().get(place.start as usize..place.end as usize)
        });
        // Every number that a page was given has a text.
        text.unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct Levels {
    definition: i16,
    repetition: i16,
}

/// Pages of texts as pages of numbers.
struct NumberPages {
    pages: Box<dyn PageReader>,
    levels: Levels,
    n_texts: u32,
    found: PagesFound,
}

impl NumberPages {
    /// Numbers the texts of a page, which begin at `start`, and returns the page's bytes with numbers instead of them.
    fn numbered(
        &mut self,
        bytes: ByteArray,
        start: usize,
        n_most: u32,
        is_dictionary: bool,
    ) -> Result<Vec<u8>> {
        let content = bytes.data();
        let mut numbered = content.get(..start).ok_or_else(damaged)?.to_vec();
        let mut places = Vec::new();
        let mut at = start;
        // A text that is cut off ends the page. The reader reports it if a value is missing.
        while places.len() < n_most as usize
            && let Some(length) = content.get(at..).and_then(|rest| rest.first_chunk::<N_PREFIX>())
        {
            let place = at + N_PREFIX..at + N_PREFIX + u32::from_le_bytes(*length) as usize;
            if place.end > content.len() {
                break;
            }
            at = place.end;
            let number = self.n_texts.wrapping_add(places.len() as u32);
            numbered.extend(number.to_le_bytes());
            // A page has less than 2 GiB.
            places.push(place.start as u32..place.end as u32);
        }
        let first = self.n_texts;
        let n_texts = first.checked_add(places.len() as u32);
        // Numbers are signed.
        self.n_texts = n_texts
            .filter(|n| i32::try_from(*n).is_ok())
            .ok_or_else(damaged)?;
        let page = TextPage {
            is_dictionary,
            first,
            bytes,
            places,
        };
        self.found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(page);
        Ok(numbered)
    }

    fn page(&mut self, page: Page) -> Result<Page> {
        Ok(match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => Page::DictionaryPage {
                buf: self.numbered(buf.into(), 0, num_values, true)?.into(),
                num_values,
                encoding,
                is_sorted,
            },
            Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => {
                let mut start = 0;
                for (encoding, level) in [
                    (rep_level_encoding, self.levels.repetition),
                    (def_level_encoding, self.levels.definition),
                ] {
                    start += n_level_bytes(&buf[start.min(buf.len())..], encoding, level, num_values)?;
                }
                Page::DataPage {
                    buf: self.numbered(buf.into(), start, num_values, false)?.into(),
                    num_values,
                    encoding: Encoding::PLAIN,
                    def_level_encoding,
                    rep_level_encoding,
                    statistics,
                }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => {
                let start = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                Page::DataPageV2 {
                    buf: self.numbered(buf.into(), start, num_values, false)?.into(),
                    num_values,
                    encoding: Encoding::PLAIN,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed,
                    statistics,
                }
            }
            Page::DataPage { encoding, .. } | Page::DataPageV2 { encoding, .. }
                if !matches!(encoding, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY) =>
            {
                return Err(damaged());
            }
            page => page,
        })
    }
}

/// Returns the number of bytes of a page's levels of one kind.
fn n_level_bytes(bytes: &[u8], encoding: Encoding, max_level: i16, n_values: u32) -> Result<usize> {
    if max_level == 0 {
        return Ok(0);
    }
    match encoding {
        Encoding::RLE => {
            let length = bytes.first_chunk::<N_PREFIX>().ok_or_else(damaged)?;
            Ok(N_PREFIX + u32::from_le_bytes(*length) as usize)
        }
        #[expect(deprecated, reason = "old writers use it for levels")]
        Encoding::BIT_PACKED => {
            let n_bits = i16::BITS - max_level.leading_zeros();
            Ok((n_values as usize * n_bits as usize).div_ceil(8))
        }
        _ => Err(damaged()),
    }
}

fn damaged() -> ParquetError {
    ParquetError::General("a page of texts is damaged".to_owned())
}

impl PageReader for NumberPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        match self.pages.get_next_page()? {
            Some(page) => self.page(page).map(Some),
            None => Ok(None),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for NumberPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
