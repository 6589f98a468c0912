//! The free space of the disk that export files lie on.

use std::io;

use super::Exports;

impl Exports {
    /// True while enough is free on the disk of the folder for files to grow on it.
    pub(crate) async fn has_space(&self) -> io::Result<bool> {
        let folder = self.folder.clone();
        let least = self.limits.min_free_bytes;
        // A disk may take its time to answer, above all one at the end of a network.
        let asked = tokio::task::spawn_blocking(move || folder.free_bytes());
        Ok(asked.await.map_err(io::Error::other)?? >= least)
    }
}
