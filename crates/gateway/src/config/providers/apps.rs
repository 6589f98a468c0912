//! Settings of a provider's apps: what their pages may do.

use portcullis_core::mcp::apps::{AppRules, is_address};
use serde::Deserialize;

use super::{Provider, choices::Exposed};

/// `apps_csp`: addresses that pages may name, by directive.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AppsCsp {
    connect: Vec<String>,
    resource: Vec<String>,
    frame: Vec<String>,
    base: Vec<String>,
}

/// Permissions that the extension knows.
const PERMISSIONS: [&str; 4] = ["camera", "clipboardWrite", "geolocation", "microphone"];

impl Provider {
    /// Rules for its apps, if it exposes them.
    pub(super) fn apps(&self) -> Result<Option<AppRules>, String> {
        let exposed = self.expose.as_deref().unwrap_or_default();
        if !exposed.contains(&Exposed::Apps) {
            let is_set = self.apps_csp.is_some() || self.apps_permissions.is_some();
            return if is_set || self.apps_domain.is_some() {
                Err("`apps_csp`, `apps_permissions` and `apps_domain` need `apps` in `expose`"
                    .to_owned())
            } else {
                Ok(None)
            };
        }
        if !exposed.contains(&Exposed::Tools) {
            return Err("`apps` in `expose` needs `tools`, which name the pages".to_owned());
        }
        let AppsCsp { connect, resource, frame, base } = self.apps_csp.clone().unwrap_or_default();
        if let Some(wrong) =
            [&connect, &resource, &frame, &base].into_iter().flatten().find(|it| !is_address(it))
        {
            return Err(format!(
                "`apps_csp` has `{wrong}`, which is no origin such as `https://api.example.com` or \
                 `https://*.example.com`, nor `*`"
            ));
        }
        let permissions = self.apps_permissions.clone().unwrap_or_default();
        if let Some(wrong) = permissions.iter().find(|it| !PERMISSIONS.contains(&it.as_str())) {
            return Err(format!(
                "`apps_permissions` has `{wrong}`; there are `{}`",
                PERMISSIONS.join("`, `")
            ));
        }
        let domain = self.apps_domain.unwrap_or_default();
        Ok(Some(AppRules { connect, resource, frame, base, permissions, domain }))
    }
}
