//! The store on a server: a real one on loopback where `redis-server` is found, and stand-ins for what goes wrong.

use crate::conformance::{self, case};
use crate::killed::nothing_acknowledged_is_lost;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tilewright_repository::{Fault, Key, RedisRepository, RedisSettings, Repository};

struct Server {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(port: u16, folder: &tempfile::TempDir) -> Option<Child> {
    let port_text = port.to_string();
    let mut process = Command::new("redis-server")
        .args(["--port", &port_text, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"])
        // With `everysec` a server may answer while a flush runs and write later: killed then, it loses what it
        // acknowledged. Only `always` makes an answer a promise.
        .args(["--appendfsync", "always", "--dir"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if process.try_wait().is_ok_and(|s| s.is_some()) || begun.elapsed() > Duration::from_secs(10) {
            let _ = process.kill();
            panic!("redis-server does not answer on port {port}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(process)
}

fn server() -> Option<Server> {
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let process = start(port, &folder);
    if process.is_none() {
        tilewright_testkit::skip("redis", "redis-server is not installed");
    }
    Some(Server { process: process?, port, folder })
}

impl Server {
    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn open(&self) -> RedisRepository {
        RedisRepository::open(&self.address(), RedisSettings::default()).expect("the server answers")
    }

    fn say(&self, command: &[&str]) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let parts: String = command.iter().map(|c| format!("${}\r\n{c}\r\n", c.len())).collect();
        write!(stream, "*{}\r\n{parts}", command.len()).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert!(!answer.starts_with('-'), "{answer}");
    }
}

#[test]
fn it_is_a_repository() {
    let Some(server) = server() else { return };
    conformance::keeps_what_it_is_given(&mut || Box::new(server.open()));
    conformance::refuses_poison(&mut server.open());
    conformance::gives_training_data(&mut server.open());
    conformance::gives_configurations(&mut || Box::new(server.open()));
}

#[test]
fn a_server_loses_nothing() {
    let Some(server) = server() else { return };
    let (acknowledged, kills) = nothing_acknowledged_is_lost(&server.address());
    println!("{acknowledged} records acknowledged, {kills} writers killed, 0 lost");
}

#[test]
fn a_connection_that_was_cut_is_made_again() {
    let Some(mut server) = server() else { return };
    let key = Key::new("set", "device").unwrap();
    let mut repository = server.open();
    repository.append(&key, &case(1.0, &[("a", Some(1.0))])).unwrap();
    server.say(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    repository.append(&key, &case(2.0, &[("a", Some(1.0))])).unwrap();
    // The server itself dies and comes back with what it acknowledged.
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    server.process = start(server.port, &server.folder).unwrap();
    repository.append(&key, &case(3.0, &[("a", Some(1.0))])).unwrap();
    assert_eq!(server.open().read(&key).unwrap().len(), 3);
}

#[test]
fn other_versions_and_damage_are_named() {
    let Some(server) = server() else { return };
    let key = Key::new("set", "device").unwrap();
    let mut repository = server.open();
    let data = "tilewright:repository:set/device";
    let json = r#"{"id":["stranger",0],"record":{"case":{"features":[],"times":[["a",-1.0]],"group":0}}}"#;
    let sum = blake3::hash(json.as_bytes()).to_hex()[..16].to_owned();
    server.say(&["HSET", data, "stranger-0", &format!("{sum} {json}")]);
    let poisoned = repository.read(&key).unwrap_err();
    assert_eq!(poisoned.fault, Fault::Poisoned, "{poisoned}");
    server.say(&["HSET", data, "stranger-0", "0123456789abcdef {}"]);
    assert!(repository.read(&key).is_err_and(|e| e.fault == Fault::Damaged));
    server.say(&["DEL", data]);
    server.say(&["SET", data, "no hash"]);
    assert!(repository.read(&key).is_err_and(|e| e.fault == Fault::Refused));
    server.say(&["SET", "tilewright:repository:version", "2"]);
    let newer = RedisRepository::open(&server.address(), RedisSettings::default()).err();
    let newer = newer.unwrap();
    assert!(newer.fault == Fault::Version && newer.message.contains("version 2"), "{newer}");
}

fn hasty() -> RedisSettings {
    RedisSettings { timeout: Duration::from_millis(200), attempts: 2, pause: Duration::from_millis(5) }
}

#[test]
fn nobody_there_is_an_error() {
    let unreachable = RedisRepository::open(&format!("redis://127.0.0.1:{}", free_port()), hasty()).err();
    let unreachable = unreachable.unwrap();
    assert!(unreachable.fault == Fault::Unreachable && unreachable.message.contains("2 attempts"), "{unreachable}");
    let nonsense = RedisRepository::open("http://127.0.0.1", hasty()).err();
    assert!(nonsense.as_ref().is_some_and(|e| e.fault == Fault::Address), "{nonsense:?}");
    for address in
        ["redis://", "redis:///1", "redis://h:0", "redis://h:99999", "redis://h:x/1", "redis://h/x", "redis://[::1]:y"]
    {
        let fault = RedisRepository::open(address, hasty()).err();
        assert!(fault.as_ref().is_some_and(|e| e.fault == Fault::Address), "{address}: {fault:?}");
    }
    let secret = RedisRepository::open("redis://user:secret@host:1/0", hasty()).err().unwrap().to_string();
    assert!(!secret.contains("secret") && secret.contains("passwords are not supported"), "{secret}");
}

/// A server from before the commands that this needs, and one that never answers.
#[test]
fn an_old_or_a_silent_server_is_an_error() {
    let stand_in = |answer: Option<String>| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("redis://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().take(4) {
                let mut stream = stream.unwrap();
                let answer = answer.clone();
                std::thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    for line in lines {
                        let Some(answer) = &answer else { continue };
                        // Handshakes are acknowledged, whatever they say.
                        let reply = match line.as_str() {
                            "INFO" => answer.as_str(),
                            "SETINFO" | "setinfo" | "SELECT" => "+OK\r\n",
                            _ => continue,
                        };
                        let _ = stream.write_all(reply.as_bytes());
                    }
                });
            }
        });
        address
    };
    let about = "# Server\r\nredis_version:2.8.0\r\n";
    let old = stand_in(Some(format!("${}\r\n{about}\r\n", about.len())));
    let refused = RedisRepository::open(&old, hasty()).err();
    let refused = refused.unwrap();
    assert!(refused.fault == Fault::Server && refused.message.contains("2.8.0"), "{refused}");
    let silent = RedisRepository::open(&stand_in(None), hasty()).err();
    assert!(silent.as_ref().is_some_and(|e| e.fault == Fault::Unreachable), "{silent:?}");
}
