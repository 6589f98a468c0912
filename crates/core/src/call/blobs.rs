//! Texts that an answer holds in base64: judged and masked as the texts they are, and sent in base64 again.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    dlp::text_in_base64,
    json::{Document, Edits, JsonValue, Node},
};

/// The answer before its texts were opened.
#[derive(Debug)]
pub(super) struct Sealed {
    whole: Document,
    /// The blocks of content that hold an opened text, in order.
    blocks: Vec<usize>,
}

/// Opens the resources, pictures and recordings of a result of MCP that are texts in truth, whatever type
/// they claim. Gives what they were opened of, if there are any.
pub(super) fn open(result: Document) -> (Document, Option<Sealed>) {
    let mut edits = Edits::default();
    let mut blocks = Vec::new();
    for (index, block) in blocks_of(result.root()).enumerate() {
        if let Some(blob) = blob_of(block)
            && let Some(text) = blob.text().and_then(text_in_base64)
        {
            edits.value(blob, Value::String(text));
            blocks.push(index);
        }
    }
    if blocks.is_empty() {
        return (result, None);
    }
    (result.edited(&edits), Some(Sealed { whole: result, blocks }))
}

impl Sealed {
    /// The answer as it came.
    pub(super) fn untouched(self) -> Document {
        self.whole
    }

    /// The answer after masking, with its opened texts in base64.
    pub(super) fn seal(&self, masked: &Document) -> Document {
        let mut edits = Edits::default();
        for (index, block) in blocks_of(masked.root()).enumerate() {
            if self.blocks.binary_search(&index).is_ok()
                && let Some(blob) = blob_of(block)
                && let Some(text) = blob.text()
            {
                edits.value(blob, Value::String(STANDARD.encode(text)));
            }
        }
        masked.edited(&edits)
    }
}

/// The blocks of content of a tool's result, of the messages of a prompt, which have one each, or the contents of a
/// resource.
fn blocks_of(result: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let items = |name| result.get(name).and_then(Node::items).into_iter().flatten();
    let of_messages = items("messages").filter_map(|message| message.get("content"));
    items("content").chain(of_messages).chain(items("contents"))
}

/// The part of a block of content, or of the contents of a resource, that is in base64.
fn blob_of(block: Node<'_>) -> Option<Node<'_>> {
    match block.get("type").map(JsonValue::text) {
        Some(Some("resource")) => block.get("resource")?.get("blob"),
        Some(Some("image" | "audio")) => block.get("data"),
        None => block.get("blob"),
        Some(_) => None,
    }
}
