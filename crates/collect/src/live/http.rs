//! Queries over HTTP: `/metrics`, `/paths`, `/hops`, `/events`, `/health`.
//!
//! One request a connection, GET alone, eight connections at a time, each with a time limit. An answer holds
//! at most 1 000 rows and states if there were more.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Shared;
use super::prometheus;
use super::snapshot::Snapshot;
use crate::flows::FlowTable;
use crate::shards::Handle;
use crate::written::{hop_rows, path_row};

const MAX_CONNECTIONS: usize = 8;
const MAX_ROWS: usize = 1_000;
const MAX_REQUEST_BYTES: u64 = 16 << 10;
const TIMEOUT: Duration = Duration::from_secs(5);

/// Answers until the process ends or `shared` stops.
pub fn serve(listener: TcpListener, shared: Arc<Shared>, shards: Handle) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if shared.stops() {
            return;
        }
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if open.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (shared, shards, count) = (Arc::clone(&shared), shards.clone(), Arc::clone(&open));
        let answer = move || {
            // Who does not read the answer has it no more.
            let _ = answer(stream, &shared, &shards);
            count.fetch_sub(1, Ordering::AcqRel);
        };
        if thread::Builder::new().name("http".into()).spawn(answer).is_err() {
            open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn answer(mut stream: TcpStream, shared: &Shared, shards: &Handle) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(stream.try_clone()?.take(MAX_REQUEST_BYTES));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut parts = first.split_whitespace();
    let (method, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (status, kind, body) = match (method, path) {
        ("GET", "/metrics") => ("200 OK", prometheus::CONTENT_TYPE, prometheus::text(&shared.latest())),
        ("GET", _) => match rows(path, &parameters(query), shared, shards) {
            Some(Ok(value)) => ("200 OK", "application/json", value.to_string()),
            Some(Err(error)) => ("400 Bad Request", "application/json", json!({"error": error}).to_string()),
            None => {
                let known = "expected /metrics, /paths, /hops, /events or /health";
                ("404 Not Found", "application/json", json!({"error": known}).to_string())
            }
        },
        _ => {
            let error = json!({"error": "expected GET"}).to_string();
            ("405 Method Not Allowed", "application/json", error)
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

fn parameters(query: &str) -> BTreeMap<&str, String> {
    let each = |pair: &'_ str| {
        pair.split_once('=').map(|(name, value)| (name.len(), value.replace("%3A", ":").replace("%3a", ":")))
    };
    query.split('&').filter_map(|pair| each(pair).map(|(length, value)| (&pair[..length], value))).collect()
}

type Rows = Result<Value, String>;

/// The answer of a path; None if there is no such path.
fn rows(path: &str, query: &BTreeMap<&str, String>, shared: &Shared, shards: &Handle) -> Option<Rows> {
    let known: &[&str] = match path {
        "/paths" => &["src", "dst"],
        "/hops" => &["switch"],
        "/events" => &["since"],
        "/health" => &[],
        _ => return None,
    };
    if let Some(unknown) = query.keys().find(|name| !known.contains(name)) {
        return Some(Err(format!("{path}: unknown parameter {unknown:?}, expected {}", known.join(", "))));
    }
    Some(match path {
        "/paths" => paths(query, shards),
        "/hops" => hops(query, &shared.latest()),
        "/events" => match query.get("since").map_or(Ok(0), |text| text.parse::<u64>()) {
            Ok(since) => Ok(cut(shared.events_since(since))),
            Err(_) => Err("since: expected the number of an event".into()),
        },
        _ => Ok(shared.health()),
    })
}

/// Of the last interval that closed, which the answer names.
fn hops(query: &BTreeMap<&str, String>, latest: &Snapshot) -> Rows {
    let mut rows = hop_rows(&latest.recent);
    if let Some(switch) = query.get("switch") {
        let node: u64 = switch.parse().map_err(|_| "switch: expected the number of a node")?;
        rows.retain(|row| row["node"] == node);
    }
    let mut answer = cut(rows);
    answer["interval"] = latest.interval.into();
    answer["time_ns"] = latest.time_ns.into();
    Ok(answer)
}

fn paths(query: &BTreeMap<&str, String>, shards: &Handle) -> Rows {
    let address = |name: &str| match query.get(name).map(|text| text.parse::<std::net::IpAddr>()) {
        None => Ok(None),
        Some(Ok(address)) => Ok(Some(address)),
        Some(Err(_)) => Err(format!("{name}: expected an IP address")),
    };
    let (source, destination) = (address("src")?, address("dst")?);
    let found = shards.ask(move |shard| {
        let table: &FlowTable = &shard.flows;
        let wanted = table.each().filter(|(flow, ..)| {
            source.is_none_or(|source| flow.source == source)
                && destination.is_none_or(|destination| flow.destination == destination)
        });
        let row = |(flow, point, state)| path_row(table, &flow, point, &state);
        wanted.take(MAX_ROWS + 1).map(row).collect::<Vec<Value>>()
    });
    Ok(cut(found.into_iter().flatten().collect()))
}

fn cut(mut rows: Vec<Value>) -> Value {
    let more = rows.len() > MAX_ROWS;
    rows.truncate(MAX_ROWS);
    json!({"rows": rows, "more": more})
}
