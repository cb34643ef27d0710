//! What another program writes, read with a limit: a line that never comes fails the test that waits for it, instead of holding up the run.

use std::io::{Error, ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Longer than any program here is silent on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(120);

/// A pipe or a terminal on which something is written within two minutes, or reading it is an error of kind `TimedOut`.
#[derive(Debug)]
pub struct Awaited<S> {
    stream: S,
    patience: Duration,
}

impl<S: Read + AsFd> Awaited<S> {
    /// Reads this stream.
    pub fn new(stream: S) -> Self {
        Self { stream, patience: PATIENCE }
    }
}

impl<S: Read + AsFd> Read for Awaited<S> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let limit = Timespec::try_from(self.patience).expect("it is minutes");
        let ready = loop {
            // The end of a stream is something to read as well.
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&limit)) {
                Err(Errno::INTR) => {}
                other => break other?,
            }
        };
        if ready == 0 {
            let words = format!("nothing was written for {} s", self.patience.as_secs_f64());
            return Err(Error::new(ErrorKind::TimedOut, words));
        }
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod unit {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_written_is_read_then_the_silence_is_an_error_and_then_the_end() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut awaited = Awaited { stream: reader, patience: Duration::from_millis(50) };
        let mut buffer = [0; 8];
        writer.write_all(b"line").unwrap();
        assert_eq!(awaited.read(&mut buffer).unwrap(), 4);
        let error = awaited.read(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "nothing was written for 0.05 s");
        drop(writer);
        assert_eq!(awaited.read(&mut buffer).unwrap(), 0);
    }
}
