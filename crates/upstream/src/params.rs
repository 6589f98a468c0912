//! `x-mcp-header`: arguments that the modern era mirrors into HTTP headers.

use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_core::{
    json::Node,
    mcp::params::{self, BadAnnotation},
};
use serde_json::Value;

/// One argument that is mirrored, with the header it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    header: HeaderName,
    param: params::ParamHeader,
}

/// The mirrored arguments of an input schema.
pub(crate) fn find(schema: &Value) -> Result<Vec<ParamHeader>, BadAnnotation> {
    let found = params::find(schema)?.into_iter();
    let named = found.map(|param| {
        let header = param.header().parse().map_err(|_| BadAnnotation)?;
        Ok(ParamHeader { header, param })
    });
    named.collect()
}

/// Adds the headers for these arguments. An absent or `null` argument has none.
pub(crate) fn mirror(params: &[ParamHeader], arguments: Node<'_>, headers: &mut HeaderMap) {
    for ParamHeader { header, param } in params {
        let value = param.value(arguments);
        if let Some(mut text) = value.and_then(|text| HeaderValue::from_str(&text).ok()) {
            text.set_sensitive(true);
            headers.insert(header.clone(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::json::Document;
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_go_to_their_headers() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "gone": {"type": "string", "x-mcp-header": "Gone"},
        }});
        let mut headers = HeaderMap::new();

        let arguments = Document::of(&json!({"region": "a\r\nb", "gone": null}));
        mirror(&find(&schema).unwrap(), arguments.root(), &mut headers);

        assert_eq!(headers["mcp-param-region"], "=?base64?YQ0KYg==?=");
        assert_eq!(headers.len(), 1);
    }
}
