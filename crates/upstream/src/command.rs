//! Secrets printed by a command of the configuration.

use std::{
    io::{self, Read as _},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use portcullis_core::secret::Secret;

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: u128 = PATIENCE.as_millis() / LOOK.as_millis();

/// Runs a program without a shell and gives its standard output, at most `most` bytes of it. What
/// it prints to standard error goes where the gateway's goes. Ends it after 30 seconds. The error
/// holds not a word of what was printed.
pub fn secret_printed_by(command: &[String], most: usize) -> Result<Secret, String> {
    let (program, arguments) = command.split_first().ok_or("the command is empty")?;
    let mut running = Command::new(program);
    running.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child =
        running.spawn().map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    let printed = read_beside(&mut child, most);
    let ended = wait(&mut child).map_err(|error| format!("`{program}`: {error}"))?;
    if !ended.success() {
        return Err(format!("`{program}` ended with {ended}"));
    }
    let printed = printed.recv_timeout(PATIENCE).ok().and_then(Result::ok);
    let printed = printed.ok_or_else(|| format!("what `{program}` printed cannot be read"))?;
    if printed.len() > most {
        return Err(format!("`{program}` printed more than {most} bytes"));
    }
    let text = String::from_utf8(printed).map_err(|_| format!("`{program}` printed no text"))?;
    Ok(Secret::new(text))
}

/// Reads on a thread of its own, so that a program that prints much does not wait for us.
fn read_beside(child: &mut Child, most: usize) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, printed) = mpsc::channel();
    let output = child.stdout.take();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map_or(Ok(0), |output| output.take(limit).read_to_end(&mut bytes));
        // The receiver may be gone.
        let _ = sender.send(read.map(|_| bytes));
    });
    printed
}

fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    for _ in 0..LOOKS {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Err(io::Error::new(io::ErrorKind::TimedOut, "it did not end in 30 s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        secret_printed_by(&words, 16).map(|secret| secret.expose().to_owned())
    }

    #[test]
    fn what_is_printed_is_taken_and_every_failure_says_which_program() {
        assert_eq!(run(&["printf", "%s", "a key"]).unwrap(), "a key");
        assert_eq!(run(&[]).unwrap_err(), "the command is empty");
        assert!(run(&["/no/such/program"]).unwrap_err().contains("/no/such/program"));
        assert!(run(&["false"]).unwrap_err().contains("`false` ended with"));
        assert!(run(&["printf", "%20s", "x"]).unwrap_err().contains("more than 16 bytes"));
        assert!(run(&["printf", "\\377"]).unwrap_err().contains("no text"));
    }
}
