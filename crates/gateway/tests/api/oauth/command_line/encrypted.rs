//! The command line and a gateway whose certificate is of a private authority.

use super::{Laptop, read};
use crate::{
    authority::Authority,
    oauth::{LINKS, Site},
    prelude::*,
};

/// The setting by which a gateway has a certificate for 127.0.0.1, and the file of the authority that vouches for it.
fn tls(folder: &Path) -> (String, PathBuf) {
    let authority = Authority::new(folder, "authority.pem");
    let (certificate, key) = authority.certificate();
    let file = |name: &str, text: String| {
        fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    let own = file("cert.pem", certificate.pem());
    let key = file("key.pem", key.serialize_pem());
    let setting = format!("[server]\ntls = {{ certificate = {own:?}, key = {key:?} }}");
    (setting, authority.file)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_over_tls_once_its_private_authority_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (tls, authority) = tls(folder.path());
    let site = Site::built(gateway().config(LINKS).config(&tls).sample());
    let url = site.gateway.url();
    let stranger = Laptop::of(&site);
    let browser = site.browser().await;

    for command in [vec!["login", "--no-browser"], vec!["principal", "list"]] {
        let arguments = [command, vec!["--url", url]].concat();
        let (code, told) = stranger.fails(&arguments, &[("PORTCULLIS_TOKEN", "x")]).await;
        assert!(code == 1 && told.contains("TLS fails"), "{told}");
    }
    let laptop = Laptop { authority: Some(authority), ..stranger };
    let output = laptop.log_in(&browser, "allow").await;

    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(read(&laptop.file())["url"], url);
    assert_eq!(laptop.json("consent list").await[0]["endpoint"], "/v1");
    assert!(url.starts_with("https://"), "{url}");
}
