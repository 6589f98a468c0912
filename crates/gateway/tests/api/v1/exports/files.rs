//! Fetching files: whole, in part, compressed, by whom and for how long.

use std::{
    io::{Read as _, Write as _},
    process::Command,
};

use reqwest::Response;

use super::{content, export, sha256, start};
use crate::{planted::plant, prelude::*};

async fn fetch(
    gateway: &Gateway,
    who: &Principal,
    path: &str,
    headers: &[(&str, &str)],
) -> Response {
    let mut request = gateway.request_of(who, Method::GET, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

fn unpacked(bytes: &[u8]) -> String {
    let mut gzip = Command::new("gzip")
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("gzip");
    let mut input = gzip.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let feeding = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let mut text = String::new();
    gzip.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    feeding.join().unwrap();
    assert!(gzip.wait().unwrap().success());
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_whole_in_part_or_compressed_and_is_always_the_same() {
    let (gateway, who) = start();
    plant(&gateway, &who, 300).await;
    let made = export(&gateway, &who, &json!({"format": "ocsf"})).await;
    let whole = content(&gateway, &who, &made).await;
    let path = made.at("/data/file").as_str().unwrap().to_owned();
    let tag = format!("\"{}\"", made.at("/data/sha256").as_str().unwrap());
    assert!(whole.len() > 200_000, "several pieces: {}", whole.len());

    let plain = fetch(&gateway, &who, &path, &[]).await;
    assert_eq!(header(&plain, "etag"), tag);
    assert_eq!(header(&plain, "content-length"), whole.len().to_string());
    assert_eq!(header(&plain, "content-type"), "application/x-ndjson");
    assert_eq!(header(&plain, "accept-ranges"), "bytes");
    assert_eq!(header(&plain, "cache-control"), "no-store");
    assert_eq!(header(&plain, "x-content-type-options"), "nosniff");
    let id = made.at("/data/id").as_str().unwrap();
    let name = format!("attachment; filename=\"{id}.ocsf.jsonl\"");
    assert_eq!(header(&plain, "content-disposition"), name);

    let zipped = fetch(&gateway, &who, &path, &[("accept-encoding", "gzip")]).await;
    assert_eq!((zipped.status().as_u16(), header(&zipped, "content-encoding")), (200, "gzip"));
    assert_ne!(header(&zipped, "etag"), tag);
    let zipped = zipped.bytes().await.unwrap();
    assert!(zipped.len() < whole.len() / 4, "{} of {}", zipped.len(), whole.len());
    assert_eq!(sha256(unpacked(&zipped).as_bytes()), sha256(whole.as_bytes()));

    let end = whole.len() - 1;
    for (range, first, last) in [
        ("bytes=0-9".to_owned(), 0, 9),
        ("bytes=100000-180000".to_owned(), 100_000, 180_000),
        (format!("bytes={}-", end - 5), end - 5, end),
        ("bytes=-7".to_owned(), end - 6, end),
    ] {
        let headers = [("range", &*range), ("if-range", &*tag), ("accept-encoding", "gzip")];
        let part = fetch(&gateway, &who, &path, &headers).await;
        assert_eq!(part.status(), 206, "{range}");
        let told = format!("bytes {first}-{last}/{}", whole.len());
        assert_eq!(header(&part, "content-range"), told);
        assert_eq!(part.text().await.unwrap(), whole[first..=last], "{range}");
    }
    let changed = [("range", "bytes=0-9"), ("if-range", "\"another\"")];
    assert_eq!(fetch(&gateway, &who, &path, &changed).await.status(), 200);
    let request = gateway.request_of(&who, Method::GET, &path);
    let behind = gateway.send(request.header("range", format!("bytes={}-", whole.len()))).await;
    assert_eq!(behind.refusal(), (416, "range_not_satisfiable"));
    assert_framed(&behind, "a range behind the end");
    assert_eq!(behind.header("content-range"), format!("bytes */{}", whole.len()));
    let head = gateway.request_of(&who, Method::HEAD, &path).send().await.unwrap();
    assert_eq!((head.status().as_u16(), header(&head, "etag")), (200, &*tag));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_for_the_org_and_nobody_else_on_the_machine() {
    // No file of an export can be read by others on the machine.
    use std::os::unix::fs::PermissionsExt as _;
    let (gateway, who) = start();
    export(&gateway, &who, &json!({})).await;

    let folder = gateway.folder().join("exports");

    let bits = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(bits(folder.clone()), 0o700);
    let kept: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(bits(kept[0].clone()), 0o600);

    // A file is for the org and those who may export.
    let made = export(&gateway, &who, &json!({})).await;
    let file = made.at("/data/file").as_str().unwrap().to_owned();
    let status = file.strip_suffix("/file").unwrap().to_owned();
    let colleague = gateway.user(&who.org, "auditor", "audit:export");
    let member = gateway.user(&who.org, "member", "mcps:read");
    let stranger = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);

    for path in [&file, &status] {
        for (asking, wanted) in [(&colleague, 200), (&member, 403), (&stranger, 404)] {
            let answer = gateway.get(asking, path).await;

            assert_eq!(answer.status, wanted, "{path}: {}", answer.text);
        }
        has!(gateway.send(gateway.request(Method::GET, path)).await, 401 "missing_token");
        let token = format!("{path}?access_token={}", who.token);
        assert_eq!(gateway.get(&who, &token).await.status, 400);
    }
}
