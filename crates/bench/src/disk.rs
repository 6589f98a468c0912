//! Duration of a durable write, which bounds governed calls.

use std::{fs::File, io::Write as _, path::Path};

use tokio::time::Instant;

use crate::{Failure, load::Measured};

const WRITES: usize = 100;
const BLOCK: [u8; 4096] = [7; 4096];

/// Times appends that are synced one by one, to a file in `folder` that is removed again.
pub(crate) fn sync_times(folder: &Path) -> Result<Measured, Failure> {
    let path = folder.join("sync-times");
    let mut file = File::create(&path)?;
    let mut times = Measured::default();
    for _ in 0..WRITES {
        file.write_all(&BLOCK)?;
        let begun = Instant::now();
        file.sync_data()?;
        times.note(begun.elapsed());
    }
    std::fs::remove_file(&path)?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_is_timed_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();

        let times = sync_times(folder.path()).unwrap();

        assert_eq!(times.latencies_us.len(), WRITES);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
