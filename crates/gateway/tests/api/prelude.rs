//! Names that almost every test of the API uses.

pub(crate) use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

pub(crate) use futures_util::future::join_all;
pub(crate) use portcullis_core::clock::Timestamp;
pub(crate) use portcullis_testkit::{
    Answer, Builder, Gateway, Habits, Hostile, HostileTool, McpServer, Oidc, PostgresDatabase,
    Principal, RedisServer, Saas, Script, Wanted, eventually, has, servers,
};
pub(crate) use reqwest::{Method, RequestBuilder};
pub(crate) use serde_json::{Value, json};
pub(crate) use tempfile::TempDir;
pub(crate) use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};

pub(crate) use crate::{
    gateway,
    given::{
        ALL_SCOPES, ENOUGH, OPEN_INTENTS, PATIENCE, assert_enveloped, assert_fails, assert_framed,
        connect, count, exchange, failure, fresh_org, is_id, items, members, now,
        org_with_time_left, plan, resident, rest, run, serve, serve_admin, serve_as, store, tenant,
        until, words,
    },
    scene::{
        DENIED, Ending, FAILED, INVALID, NOT_FOUND, OVERLOADED, PENDING, SUCCESS, Scene, TIMED_OUT,
        TOOL_ERROR, check, events, giving, list, list_of, request_id, scene, scene_under,
        scene_with, tool, wait_for_events, whole,
    },
};
