//! The texts of an event as they are kept: one frame of zstd (RFC 8878), compressed with a dictionary.
//!
//! A packed record is one byte, the number of its dictionary, and the frame. The frame holds the record, the
//! erasable part and its salts, each as JSON in a line of its own: canonical JSON has no line breaks. In the
//! place of the salts stands their seed until something is erased; then the record is without what follows
//! from the others ([`restore`]).

use std::{borrow::Cow, cell::RefCell, io, ops::Range, sync::LazyLock};

use portcullis_core::audit::{RestoredRecord, restore};
use zstd::{
    bulk::{Compressor, Decompressor},
    dict::{DecoderDictionary, EncoderDictionary},
    zstd_safe::{compress_bound, get_frame_content_size},
};

use super::{EventTexts, TextColumn};
use crate::{error::StoreError, row_key::PackedRecord};

/// The dictionary, made by `cargo run -p portcullis-store --example dictionary`. It never changes,
/// for records that were written with it have to be read: another one gets the next number.
const DICTIONARY: &[u8] = include_bytes!("record-2.dict");
const NUMBER: u8 = 2;
/// The number of texts that are not compressed.
const PLAIN: u8 = 0;

/// Effort of compression.
#[derive(Debug, Clone, Copy)]
enum Effort {
    /// For records that are kept: level 1. Higher levels take longer and save less than a hundredth.
    Small,
    /// For records of intents, which are deleted with the call: level -5 takes half the time of level 1, and
    /// two fifths more room.
    Fast,
}

const LEVELS: [i32; 2] = [1, -5];

/// Bytes that a frame may unpack to. The largest payload that is kept has some hundred kilobytes.
pub(crate) const MOST_BYTES: usize = 16 << 20;

static ENCODERS: LazyLock<[EncoderDictionary<'static>; 2]> =
    LazyLock::new(|| LEVELS.map(|level| EncoderDictionary::copy(DICTIONARY, level)));
static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

type Writer = io::Result<Compressor<'static>>;
type Reader = io::Result<Decompressor<'static>>;

/// Bytes of the room for frames that a thread keeps.
const ROOM: usize = 64 << 10;

thread_local! {
    /// The compressors, and room for their frames.
    static COMPRESSORS: RefCell<([Writer; 2], Vec<u8>)> = RefCell::new((
        ENCODERS.each_ref().map(Compressor::with_prepared_dictionary), Vec::new(),
    ));
    static DECOMPRESSOR: RefCell<Reader> =
        RefCell::new(Decompressor::with_prepared_dictionary(&DECODER));
}

/// The texts of a record: what is hashed, and what can be erased.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordTexts {
    /// The part that is hashed, as JSON, without sequence and time of recording.
    pub core: String,
    /// The erasable part, as JSON.
    pub detached: Option<String>,
    /// The salts of the erasable part, as JSON.
    pub salts: Option<String>,
}

impl RecordTexts {
    /// The texts of a row.
    pub(crate) fn of_row(packed: Option<&[u8]>) -> Result<Self, StoreError> {
        Self::unpack(packed.unwrap_or_default())
    }

    /// Reads a packed record.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for anything else.
    pub fn unpack(packed: &[u8]) -> Result<Self, StoreError> {
        let text = unpacked(packed).ok_or(StoreError::Corrupt("audit_events.packed"))?;
        let mut lines = text.split('\n').map(str::to_owned);
        let core = lines.next().unwrap_or_default();
        let mut line = || lines.next().filter(|line| !line.is_empty());
        let texts = Self { core, detached: line(), salts: line() };
        if lines.next().is_some() {
            return Err(StoreError::Corrupt("audit_events.packed"));
        }
        if texts.salts.as_deref().is_some_and(|salts| salts.starts_with('"')) {
            texts.restored().ok_or(StoreError::Corrupt("audit_events.packed"))
        } else {
            Ok(texts)
        }
    }

    /// The record in full of one that was kept with the seed of its salts.
    fn restored(self) -> Option<Self> {
        let RestoredRecord { core, salts } =
            restore(&self.core, self.detached.as_deref()?, self.salts.as_deref()?)?;
        Some(Self { core, detached: self.detached, salts: Some(salts) })
    }

    /// The packed record.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        let texts = [Some(self.core.as_str()), self.detached.as_deref(), self.salts.as_deref()];
        packed(&texts.map(Option::unwrap_or_default).join("\n"), Effort::Small)
    }
}

impl EventTexts {
    /// Packs the record now, on the caller's thread.
    pub(crate) fn pack(&mut self) {
        self.packed = Some(self.packed().into_owned());
    }

    /// The same for the record of an intent.
    pub(crate) fn pack_fast(&mut self) {
        self.packed = Some(PackedRecord::of(packed(&self.record(), Effort::Fast)));
    }

    /// The packed record of an event.
    pub(crate) fn packed(&self) -> Cow<'_, PackedRecord> {
        let now = || Cow::Owned(PackedRecord::of(packed(&self.record(), Effort::Small)));
        self.packed.as_ref().map_or_else(now, Cow::Borrowed)
    }

    /// The lines of the record, as they stand if they were written one behind the other.
    fn record(&self) -> Cow<'_, str> {
        let lines = [TextColumn::Core, TextColumn::Detached, TextColumn::Salts];
        let places = lines.map(|column| self.place(column).unwrap_or_default());
        let follows = |[one, next]: &[Range<usize>; 2]| one.end + "\n".len() == next.start;
        let [core, .., salts] = &places;
        match self.text.get(core.start..salts.end) {
            Some(text) if places.array_windows().all(follows) => Cow::Borrowed(text),
            Some(_) | None => {
                Cow::Owned(lines.map(|column| self.of(column).unwrap_or_default()).join("\n"))
            }
        }
    }
}

fn packed(text: &str, effort: Effort) -> Vec<u8> {
    let frame = COMPRESSORS.with_borrow_mut(|(all, room)| {
        let compressor = all.get_mut(effort as usize)?.as_mut().ok()?;
        room.clear();
        room.reserve(compress_bound(text.len()));
        compressor.compress_to_buffer(text.as_bytes(), room).ok()?;
        let packed = [&[NUMBER], room.as_slice()].concat();
        room.shrink_to(ROOM);
        Some(packed)
    });
    // Without memory for it, the text itself is kept.
    frame.unwrap_or_else(|| [&[PLAIN], text.as_bytes()].concat())
}

fn unpacked(packed: &[u8]) -> Option<String> {
    let (number, frame) = packed.split_first()?;
    if *number == PLAIN {
        return String::from_utf8(frame.to_vec()).ok();
    }
    if *number != NUMBER {
        return None;
    }
    let size = usize::try_from(get_frame_content_size(frame).ok()??).ok()?;
    let size = Some(size).filter(|size| *size <= MOST_BYTES)?;
    let bytes = DECOMPRESSOR
        .with_borrow_mut(|decompressor| decompressor.as_mut().ok()?.decompress(frame, size).ok())?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CORE: &str = r#"{"actor":{"auth":{"method":"operator","trust":null},"id":"sa_01M8C3PSG9P5Q9XWRQ3AQTYERX"}}"#;

    fn texts(core: &str, detached: Option<&str>, salts: Option<&str>) -> RecordTexts {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        RecordTexts { core: core.to_owned(), detached: owned(detached), salts: owned(salts) }
    }

    proptest! {
        #[test]
        fn any_texts_are_read_back(
            core in "[^\n]{0,200}",
            detached in proptest::option::of("[^\n]{1,200}"),
            salts in proptest::option::of("[^\n\"][^\n]{0,199}"),
        ) {
            let texts = texts(&core, detached.as_deref(), salts.as_deref());

            prop_assert_eq!(RecordTexts::unpack(&texts.pack()), Ok(texts));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = RecordTexts::unpack(&bytes);
        }
    }

    #[test]
    fn a_record_that_is_packed_fast_is_read_like_others() {
        let mut intent = EventTexts::default().with(TextColumn::Core, CORE);
        intent.pack_fast();

        let read = RecordTexts::unpack(&intent.packed().bytes);

        assert!(intent.packed().bytes.len() < CORE.len());
        assert_eq!(read, Ok(texts(CORE, None, None)));
    }

    #[test]
    fn a_record_that_was_changed_is_refused_or_reads_differently() {
        // No part of it stands in two places of the dictionary, of which a frame might name either.
        let texts = texts(CORE, Some(r#"{"label":"ci"}"#), None);
        let packed = texts.pack();
        assert!(packed.len() < CORE.len());

        for place in 0..packed.len() {
            for bit in 0..8 {
                let mut changed = packed.clone();
                changed[place] ^= 1 << bit;
                if let Ok(read) = RecordTexts::unpack(&changed) {
                    let told = format!("bit {bit} of byte {place}");
                    assert!(read != texts || is_no_content(place), "{told}");
                }
            }
        }
    }

    /// Bits of the head of a frame that say nothing of its content.
    fn is_no_content(place: usize) -> bool {
        (1..=6).contains(&place)
    }

    #[test]
    fn a_record_with_a_seed_is_read_in_full_and_packed_without_the_seed_again() {
        let seed = "\"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\"";
        let kept = texts(r#"{"commitments":{},"id":"evt_1"}"#, Some(r#"{"a":1}"#), Some(seed));

        let read = RecordTexts::unpack(&kept.pack()).unwrap();
        let again = read.pack();

        assert!(read.core.starts_with(r#"{"commitments":{"a":"sha256:"#), "{}", read.core);
        assert!(read.salts.as_deref().unwrap().starts_with(r#"{"a":""#), "{:?}", read.salts);
        assert!(!unpacked(&again).unwrap().contains(seed));
        assert_eq!(RecordTexts::unpack(&again), Ok(read));
        let foreign = texts("{}", Some(r#"{"a":1}"#), Some(seed)).pack();
        let refused = RecordTexts::unpack(&foreign);
        assert_eq!(refused, Err(StoreError::Corrupt("audit_events.packed")));
    }

    #[test]
    fn a_frame_that_says_it_is_too_large_is_refused() {
        let bomb = zstd::bulk::compress(&vec![b'a'; MOST_BYTES + 1], 1).unwrap();

        let refused = RecordTexts::unpack(&[&[NUMBER], bomb.as_slice()].concat());

        assert_eq!(refused, Err(StoreError::Corrupt("audit_events.packed")));
    }

    #[test]
    fn a_record_of_another_dictionary_is_refused() {
        let packed = texts(CORE, None, None).pack();
        let frame = packed.strip_prefix(&[NUMBER]).unwrap();

        for other in [NUMBER - 1, NUMBER + 1] {
            let refused = RecordTexts::unpack(&[&[other], frame].concat());

            assert_eq!(refused, Err(StoreError::Corrupt("audit_events.packed")), "{other}");
        }
    }

    #[test]
    fn a_record_with_more_lines_than_it_has_texts_is_refused() {
        for more in ["\n", "\nmore"] {
            let packed = [&[PLAIN], CORE.as_bytes(), b"\n\n{}", more.as_bytes()].concat();

            let refused = RecordTexts::unpack(&packed);

            assert_eq!(refused, Err(StoreError::Corrupt("audit_events.packed")));
        }
    }

    #[test]
    fn a_text_that_is_not_compressed_is_read() {
        let plain = [&[PLAIN], CORE.as_bytes(), b"\n\n{}"].concat();

        assert_eq!(RecordTexts::unpack(&plain), Ok(texts(CORE, None, Some("{}"))));
    }
}
