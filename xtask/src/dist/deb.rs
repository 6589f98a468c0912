//! The Debian package: a tree of files, and what `deploy/debian` says of it.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Release, done, files, install, output, read, write};

/// Builds the package and returns its path.
pub(super) fn package(release: &Release<'_>, generated: &Path) -> io::Result<PathBuf> {
    let tree = release.stage.join("deb");
    lay_out(release, generated, &tree)?;
    control(release, &tree)?;
    close_folders(&tree)?;
    let architecture = architecture(&release.target);
    let name = format!("portcullis_{}_{architecture}.deb", release.version);
    let package = release.folder.join(name);
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.env("SOURCE_DATE_EPOCH", &release.epoch).args(["--root-owner-group", "-Zzstd", "--build"]);
    done(dpkg.arg(&tree).arg(&package))?;
    Ok(package)
}

fn lay_out(release: &Release<'_>, generated: &Path, tree: &Path) -> io::Result<()> {
    install(&release.binary, &tree.join("usr/bin/portcullis"), 0o755)?;
    for (from, to) in [
        ("docs/portcullis.starter.toml", "etc/portcullis/portcullis.toml"),
        ("docs/portcullis.example.toml", "usr/share/doc/portcullis/portcullis.example.toml"),
        (
            "deploy/helm/portcullis/portcullis.rules.yml",
            "usr/share/doc/portcullis/portcullis.rules.yml",
        ),
        ("README.md", "usr/share/doc/portcullis/README.md"),
        ("deploy/debian/copyright", "usr/share/doc/portcullis/copyright"),
        ("deploy/systemd/portcullis.sysusers", "usr/lib/sysusers.d/portcullis.conf"),
    ] {
        install(&release.root.join(from), &tree.join(to), 0o644)?;
    }
    let unit = read(&release.root.join("deploy/systemd/portcullis.service"))?;
    let unit = String::from_utf8_lossy(&unit).replace("/usr/local/bin/", "/usr/bin/");
    write(&tree.join("usr/lib/systemd/system/portcullis.service"), unit.as_bytes(), 0o644)?;
    for (from, to) in [
        ("portcullis.bash", "usr/share/bash-completion/completions/portcullis"),
        ("_portcullis", "usr/share/zsh/vendor-completions/_portcullis"),
        ("portcullis.fish", "usr/share/fish/vendor_completions.d/portcullis.fish"),
    ] {
        install(&generated.join("completions").join(from), &tree.join(to), 0o644)?;
    }
    let pages = tree.join("usr/share/man/man1");
    for page in files(&generated.join("man"))? {
        let copy = pages.join(page.file_name().unwrap_or_default());
        install(&page, &copy, 0o644)?;
        done(Command::new("gzip").args(["-n", "-9"]).arg(&copy))?;
    }
    Ok(())
}

/// Writes the files that dpkg itself reads.
fn control(release: &Release<'_>, tree: &Path) -> io::Result<()> {
    let debian = release.root.join("deploy/debian");
    for script in ["postinst", "prerm", "postrm"] {
        install(&debian.join(script), &tree.join("DEBIAN").join(script), 0o755)?;
    }
    install(&debian.join("conffiles"), &tree.join("DEBIAN/conffiles"), 0o644)?;
    // As new as the one that it was linked with is enough; older ones may lack symbols.
    let libc = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let libc = libc.trim().trim_start_matches("glibc ").to_owned();
    let text = read(&debian.join("control"))?;
    let text = String::from_utf8_lossy(&text)
        .replace("@VERSION@", &release.version)
        .replace("@ARCHITECTURE@", architecture(&release.target))
        .replace("@LIBC@", &libc)
        .replace("@SIZE@", &(size(tree)? / 1024).to_string());
    write(&tree.join("DEBIAN/control"), text.as_bytes(), 0o644)
}

/// The mode of each folder, whatever the umask of the build was.
fn close_folders(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for path in files(folder)?.into_iter().filter(|path| path.is_dir()) {
        close_folders(&path)?;
    }
    Ok(())
}

/// Bytes of the files below a folder.
fn size(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for path in files(folder)? {
        bytes += if path.is_dir() { size(&path)? } else { fs::metadata(&path)?.len() };
    }
    Ok(bytes)
}

/// The name that Debian has for the processor of a target.
fn architecture(target: &str) -> &str {
    match target.split('-').next() {
        Some("x86_64") => "amd64",
        Some("aarch64") => "arm64",
        Some(other) => other,
        None => "",
    }
}
