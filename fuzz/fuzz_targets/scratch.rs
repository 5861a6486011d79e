//! A file with an input, without a name that could be left behind.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

pub struct Scratch {
    file: File,
    path: PathBuf,
}

impl Scratch {
    pub fn new() -> Scratch {
        let file = tempfile::tempfile().expect("a temporary file");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Scratch { file, path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn fill(&self, content: &[u8]) {
        self.file.set_len(0).expect("it can be emptied");
        self.file.write_all_at(content, 0).expect("it can be written");
    }
}
