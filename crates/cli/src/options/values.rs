//! Parsers of option values: sizes, shares, times and addresses.

use crate::hosts::session::PORT;
use netdyno_protocol::quantity;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Parses a size in bytes, in units of 1000 or of 1024.
pub fn bytes(text: &str) -> Result<usize, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let unit: usize = match unit {
        _ if digits.is_empty() => return Err("not a size, as in 64, 5kB or 64KiB".into()),
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("not a size, as in 64, 5kB or 64KiB".into()),
    };
    // An overflow becomes the maximum, which exceeds every limit.
    Ok(digits.parse::<usize>().ok().and_then(|count| count.checked_mul(unit)).unwrap_or(usize::MAX))
}

/// Parses the size of a message. The layer reports its own, smaller limit.
pub fn size(text: &str) -> Result<u32, String> {
    let size = u32::try_from(bytes(text)?).ok().filter(|size| *size >= 1);
    size.ok_or_else(|| format!("must be from 1B to {}B", u32::MAX))
}

/// Parses the largest size of a sweep over sizes, 1 KiB to 1 GiB. Below 1 KiB there are too few points to fit
/// a line.
pub fn largest(text: &str) -> Result<usize, String> {
    let size = Some(bytes(text)?).filter(|size| (1 << 10..=1 << 30).contains(size));
    size.ok_or_else(|| "must be from 1KiB to 1GiB".into())
}

/// Parses a rate, in bytes per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = quantity::bytes_per_second(text);
    let rate = rate.ok().filter(|rate| (1.0..=1e15).contains(rate));
    rate.ok_or_else(|| "must be a rate from 1B/s to 1000TB/s, as in 12.5GB/s or 100Mbit/s".into())
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "not a number".to_owned())
}

pub fn precision(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if value > 0.0 && value < 1.0 { Ok(value) } else { Err("must be above 0 and below 1, as in 0.02".into()) }
}

/// Parses a confidence level, as in `0.95`.
pub fn confidence(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if (0.5..=0.9999).contains(&value) {
        Ok(value)
    } else {
        Err("must be from 0.5 to 0.9999, as in 0.95".into())
    }
}

pub fn max_time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| "not a time with a unit, as in 30s or 2min".to_owned())?;
    let range = Duration::from_millis(100)..=Duration::from_secs(86_400);
    if range.contains(&time) { Ok(time) } else { Err("must be from 100ms to 1day".into()) }
}

/// Parses the local address of sockets; port 0 stands for any port.
pub fn bind(text: &str) -> Result<SocketAddr, String> {
    address(text, 0)
}

/// Parses the address of a served host.
pub fn peer(text: &str) -> Result<SocketAddr, String> {
    address(text, PORT)
}

/// Parses the address of a server that runs already. Its port must be named.
pub fn server(text: &str) -> Result<SocketAddr, String> {
    match address(text, 0)? {
        address if address.port() == 0 => Err("must name the port, as in HOST:4711 or [::1]:4711".into()),
        address => Ok(address),
    }
}

/// Parses a host, by number or by name, and a port.
pub fn address(text: &str, default_port: u16) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, default_port));
    }
    let (host, port) = match text.rsplit_once(':') {
        None => (text, default_port),
        Some((host, port)) => {
            (host, port.parse().map_err(|_| format!("'{port}' is not a port: use 0 to 65535"))?)
        }
    };
    let addresses = (host, port).to_socket_addrs().map_err(|_| format!("there is no host '{host}'"))?;
    // IPv4 comes before IPv6, because it is configured more often.
    addresses.min_by_key(|address| address.is_ipv6()).ok_or_else(|| format!("'{host}' has no address"))
}
