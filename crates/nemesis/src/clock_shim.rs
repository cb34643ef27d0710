//! Wrong clocks for one process: a shared object that is compiled when it is needed and loaded before the program.
//!
//! It runs the two clocks that deadlines are counted on at another rate, and steps the time of day while the program runs. The
//! offsets of whole clocks are the kernel's business: see the time namespaces of [`node`](crate::node).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

const SOURCE: &str = include_str!("clock_shim.c");

/// The compiled shim.
#[derive(Debug, Clone)]
pub struct Shim {
    object: PathBuf,
}

impl Shim {
    /// Compiles it into a directory.
    ///
    /// # Errors
    /// When there is no compiler, or it does not like the source.
    pub fn compile(directory: &Path) -> Result<Self> {
        let (source, object) = (directory.join("clock_shim.c"), directory.join("clock_shim.so"));
        std::fs::write(&source, SOURCE).with_context(|| format!("{} cannot be written", source.display()))?;
        let (from, to) = (source.to_string_lossy().into_owned(), object.to_string_lossy().into_owned());
        shell::run("cc", &["-shared", "-fPIC", "-O1", "-o", &to, &from, "-ldl"])?;
        Ok(Self { object })
    }

    /// Lets a command run its clocks at `rate`, and its time of day as `wall` says.
    pub fn load<'a>(&self, command: &'a mut Command, rate: f64, wall: Option<&Wall>) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.object).env("SHIM_RATE", rate.to_string());
        if let Some(wall) = wall {
            command.env("SHIM_WALL", &wall.path).env("SHIM_WALL_RATE", wall.rate.to_string());
        }
        command
    }
}

/// The time of day of one process, which can be stepped.
#[derive(Debug)]
pub struct Wall {
    path: PathBuf,
    rate: f64,
    file: File,
}

impl Wall {
    /// A time of day that runs at `rate` from the start of its process on, kept in a new file.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: PathBuf, rate: f64) -> Result<Self> {
        let file = File::create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        let wall = Self { path, rate, file };
        wall.step_to(0)?;
        Ok(wall)
    }

    /// From now on the time of day is wrong by so many seconds.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn step_to(&self, seconds: i64) -> Result<()> {
        let nanos = seconds.saturating_mul(1_000_000_000);
        self.file
            .write_all_at(&nanos.to_ne_bytes(), 0)
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints how fast its clocks are, asking the kernel without the C library's function, and the time of day at both ends.
    const PROGRAM: &str = r#"
        #define _GNU_SOURCE
        #include <stdio.h>
        #include <time.h>
        #include <unistd.h>
        #include <sys/syscall.h>
        static long long count(int clock) {
            struct timespec t;
            syscall(SYS_clock_gettime, clock, &t);
            return t.tv_sec * 1000000000LL + t.tv_nsec;
        }
        int main(void) {
            struct timespec now, then;
            clock_gettime(CLOCK_REALTIME, &then);
            long long real = count(CLOCK_MONOTONIC), boot = count(CLOCK_BOOTTIME), raw = count(CLOCK_MONOTONIC_RAW);
            while (count(CLOCK_MONOTONIC) - real < 100000000) {}
            real = count(CLOCK_MONOTONIC) - real;
            double rates[2] = {(double)(count(CLOCK_BOOTTIME) - boot) / real, (double)(count(CLOCK_MONOTONIC_RAW) - raw) / real};
            clock_gettime(CLOCK_REALTIME, &now);
            printf("%f %f %ld %ld\n", rates[0], rates[1], then.tv_sec, now.tv_sec - then.tv_sec);
        }"#;

    fn numbers(command: &mut Command) -> Vec<f64> {
        let output = shell::output(command).unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn clocks_run_at_the_rate_asked_for_and_the_time_of_day_is_stepped() {
        let directory = std::env::temp_dir().join(format!("leasehold-shim-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (source, program) = (directory.join("count.c"), directory.join("count"));
        std::fs::write(&source, PROGRAM).unwrap();
        shell::run("cc", &["-o", program.to_str().unwrap(), source.to_str().unwrap()]).unwrap();
        let shim = Shim::compile(&directory).unwrap();
        let wall = Wall::create(directory.join("wall"), 100.0).unwrap();
        wall.step_to(86_400).unwrap();
        let right = numbers(&mut Command::new(&program));
        let wrong = numbers(shim.load(&mut Command::new(&program), 1.5, Some(&wall)));
        std::fs::remove_dir_all(&directory).unwrap();
        assert!((right[0] - 1.0).abs() < 0.01 && (right[1] - 1.0).abs() < 0.01, "{right:?}");
        assert!((wrong[0] - 1.5).abs() < 0.01 && (wrong[1] - 1.5).abs() < 0.01, "{wrong:?}");
        assert!((wrong[2] - right[2] - 86_400.0).abs() < 60.0, "{right:?} {wrong:?}");
        // A tenth of a second is ten seconds at a hundred times the speed.
        assert!(right[3] < 5.0 && wrong[3] >= 9.0, "{right:?} {wrong:?}");
    }
}
