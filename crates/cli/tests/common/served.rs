//! A running `netdyno serve`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout that only a hang exceeds.
pub const LONG: Duration = Duration::from_secs(60);

/// A running `netdyno serve`.
pub struct Served {
    child: Child,
    announcement: String,
    log: Arc<Mutex<String>>,
}

impl Served {
    /// Starts the command, and waits until it serves.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let written = Arc::clone(&log);
        thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|len| len > 0) {
                written.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        let mut announcement = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        while !announcement.contains("Ctrl-C") {
            let read = stdout.read_line(&mut announcement).unwrap();
            assert!(read > 0, "{announcement}{}", log.lock().unwrap());
        }
        thread::spawn(move || stdout.read_to_end(&mut Vec::new()));
        Self { child, announcement, log }
    }

    /// Returns the announcement at its start.
    pub fn announcement(&self) -> &str {
        &self.announcement
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        let text = self.announcement.split("at port ").nth(1).unwrap();
        text.split('.').next().unwrap().parse().unwrap()
    }

    /// Returns the key that it has generated.
    pub fn key(&self) -> &str {
        let text = self.announcement.split("NETDYNO_KEY=").nth(1).unwrap();
        text.split_whitespace().next().unwrap()
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its messages about clients so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until its messages contain `text` this many times.
    pub fn says(&self, text: &str, times: usize) {
        let until = Instant::now() + LONG;
        while self.log().matches(text).count() < times {
            assert!(Instant::now() < until, "'{text}' is not {times} times in: {}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for its end and returns its exit code.
    pub fn code(&mut self) -> Option<i32> {
        let until = Instant::now() + LONG;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end: {}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
