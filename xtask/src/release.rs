//! The gateway as it is shipped: compiled with what its own benchmark tells about which code runs
//! (profile-guided optimisation).
//!
//! A build that counts is called as a user calls it, and the compiler then lays out what runs often
//! and makes the rest small. `cargo build --profile shipped` gives the same program without that, in a
//! third of the time. `cargo build --release` takes a sixth of it, for calls that cost more.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Load of the instrumented build: bodies of 1 KB from few and many clients, then large ones.
const TRAINING: [[&str; 7]; 2] = [
    ["builds", "--connections", "1,32,256", "--payload", "1024", "--duration", "5"],
    ["builds", "--connections", "32", "--payload", "65536", "--duration", "3"],
];
/// Then more calls than it can answer.
const OVERLOAD: [&str; 3] = ["overload", "--duration", "4"];

/// Builds it and tells where it is.
pub(crate) fn run(root: &Path) -> io::Result<PathBuf> {
    let compiler = Compiler::ask()?;
    let profdata = compiler.profdata()?;
    let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
    let folder = target.join("guided");
    let counts = folder.join("counts");
    if counts.exists() {
        fs::remove_dir_all(&counts)?;
    }
    fs::create_dir_all(&counts)?;
    let built = target.join(&compiler.host).join("shipped/portcullis");
    let out = folder.join("portcullis");

    crate::say("1/4  the benchmark\n");
    done(cargo(root).args(["--package", "portcullis-bench"]))?;
    crate::say("2/4  a gateway that counts\n");
    done(&mut compiler.gateway(root, flag("-Cprofile-generate=", &counts)))?;
    crate::say("3/4  calls\n");
    let bench = |calls: &[&str]| {
        let mut bench = Command::new(target.join("shipped/portcullis-bench"));
        bench.env("LLVM_PROFILE_FILE", counts.join("%p.profraw"));
        bench.args(calls).arg("--binary").arg(&built);
        bench
    };
    for calls in TRAINING {
        done(&mut bench(&calls))?;
    }
    ended(&mut bench(&OVERLOAD))?;
    let merged = folder.join("merged.profdata");
    done(Command::new(profdata).arg("merge").arg("--output").arg(&merged).arg(&counts))?;
    crate::say("4/4  the gateway\n");
    done(&mut compiler.gateway(root, flag("-Cprofile-use=", &merged)))?;
    fs::copy(&built, &out)?;
    Ok(out)
}

/// The target that the compiler builds for when nothing else is said.
pub(crate) fn host() -> io::Result<String> {
    Ok(Compiler::ask()?.host)
}

fn flag(name: &str, path: &Path) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(path);
    flag
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--profile", "shipped", "--locked"]).current_dir(root);
    cargo
}

fn done(command: &mut Command) -> io::Result<()> {
    if command.status()?.success() { Ok(()) } else { Err(failed(command)) }
}

/// The benchmark of overload came to its end: a build that counts is slow, and may miss its goals, which
/// is status 1.
fn ended(overload: &mut Command) -> io::Result<()> {
    if matches!(overload.status()?.code(), Some(0 | 1)) { Ok(()) } else { Err(failed(overload)) }
}

fn failed(command: &Command) -> io::Error {
    let program = command.get_program().to_string_lossy().into_owned();
    io::Error::other(format!("`{program}` failed"))
}

/// The compiler, as it tells of itself.
struct Compiler {
    /// Target triple by default.
    host: String,
    /// The major version of its LLVM.
    llvm: String,
    /// Folder of its own tools, if they are installed.
    tools: PathBuf,
}

impl Compiler {
    fn ask() -> io::Result<Self> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let said = |arguments: &[&str]| -> io::Result<String> {
            let told = Command::new(&rustc).args(arguments).output()?.stdout;
            Ok(String::from_utf8_lossy(&told).trim().to_owned())
        };
        let version = said(&["-vV"])?;
        let sysroot = said(&["--print", "sysroot"])?;
        let told = versions(&version);
        let (host, llvm) = told.ok_or_else(|| io::Error::other("rustc tells no version"))?;
        let tools = PathBuf::from(sysroot).join("lib/rustlib").join(&host).join("bin");
        Ok(Self { host, llvm, tools })
    }

    /// The tool that puts counts together. It has to be of the compiler's own LLVM.
    fn profdata(&self) -> io::Result<PathBuf> {
        let candidates = [
            self.tools.join("llvm-profdata"),
            PathBuf::from(format!("llvm-profdata-{}", self.llvm)),
        ];
        let works = |tool: &PathBuf| Command::new(tool).arg("--version").output().is_ok();
        candidates.into_iter().find(works).ok_or_else(|| {
            io::Error::other(format!(
                "there is no llvm-profdata of LLVM {}: `rustup component add llvm-tools`, or \
                 `apt-get install llvm-{}`",
                self.llvm, self.llvm
            ))
        })
    }

    /// Compiles the gateway with this flag. The target is named, so that the flag is for it alone and
    /// not for programs that run while it is built.
    fn gateway(&self, root: &Path, flag: OsString) -> Command {
        let mut cargo = cargo(root);
        cargo.args(["--package", "portcullis", "--target", &self.host]).env("RUSTFLAGS", flag);
        cargo
    }
}

/// The host and the major version of LLVM in what `rustc -vV` prints.
fn versions(told: &str) -> Option<(String, String)> {
    let line = |name| told.lines().find_map(|line| line.strip_prefix(name));
    let (llvm, _) = line("LLVM version: ")?.split_once('.')?;
    Some((line("host: ")?.to_owned(), llvm.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_llvm_are_read_from_what_the_compiler_prints() {
        let told = "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\n\
                    host: x86_64-unknown-linux-gnu\nrelease: 1.95.0\nLLVM version: 22.1.2\n";

        let read = versions(told);

        assert_eq!(read, Some(("x86_64-unknown-linux-gnu".to_owned(), "22".to_owned())));
        assert_eq!(versions("host: x86_64\n"), None);
    }
}
