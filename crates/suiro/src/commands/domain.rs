//! The domain: `suiro domain`, `suiro audit`, `suiro login`.

use super::{Context, events, of_controller, out};
use crate::args::{DomainCommand, LoginArgs, NodeCommand, TokenCommand, UserCommand};
use crate::failure::Failure;
use crate::login::{self, Login};
use crate::place::ControllerPlace;
use crate::secret;
use crate::table::Table;
use api::{
    AuditLine, Declaration, Deviation, DomainNodeView, Fault, JoinTokenSpec, JoinTokenView, Method,
    NewToken, PasswordSpec, Role, UserSpec, UserView, quoted,
};
use serde::de::DeserializeOwned;
use std::time::{Duration, UNIX_EPOCH};

/// `suiro domain`.
pub fn run(context: &Context, command: DomainCommand) -> Result<(), Failure> {
    match command {
        DomainCommand::Show => {
            let declared: Declaration = get(context, "/v1/domain")?;
            context.print(&declared, |declared| declared.text.clone())
        }
        DomainCommand::Nodes | DomainCommand::Node(NodeCommand::List) => nodes(context),
        DomainCommand::Node(NodeCommand::Forget { node }) => {
            let path = format!("/v1/nodes/{}/forget", quoted(&node));
            let done: Result<(), _> = context.controller.send(Method::POST, &path, &());
            done.map_err(of_controller)?;
            said(context, &format!("node {node} is forgotten: its certificate is worth nothing\n"))
        }
        DomainCommand::Token(command) => token(context, command),
        DomainCommand::User(command) => user(context, command),
        DomainCommand::Audit { last } => {
            let mut lines: Vec<AuditLine> = get(context, "/v1/audit")?;
            lines.drain(..lines.len().saturating_sub(last));
            context.print(&lines, |lines| lines.iter().map(line).collect())
        }
        DomainCommand::Events(args) => events::of_domain(context, &args),
    }
}

/// `suiro login`, before any controller is asked as the one who was logged in.
pub fn login(args: &LoginArgs, patience: Duration, json: bool) -> Result<(), Failure> {
    let usage =
        |cause: &str, remedy: &str| Failure::Usage(Fault::new("login", "log in", cause, remedy));
    let ControllerPlace::Address(address) = args.at.clone() else {
        let remedy = "name HOST:PORT; who may open the socket needs no login: --control SOCKET";
        return Err(usage("that is a socket", remedy));
    };
    let token = secret::token(args.token_file.as_deref(), secret::USER)?.ok_or_else(|| {
        usage("no token was given", "give it by --token-file FILE, or in SUIRO_TOKEN")
    })?;
    let client = login::client(&address, token.clone(), patience)?;
    let user: UserView = client.get("/v1/self").map_err(of_controller)?;
    let path = login::keep(&Login { address: address.clone(), token })?;
    let of = user.tenant.as_ref().map(|tenant| format!(" of {tenant}")).unwrap_or_default();
    let (name, role) = (&user.name, user.role.word());
    if json {
        return out(&(serde_json::to_string_pretty(&user).expect("plain data") + "\n"));
    }
    out(&format!("logged in to {address} as {name}, {role}{of}; kept in {}\n", path.display()))
}

/// `suiro audit`.
pub fn deviations(context: &Context, deep: bool) -> Result<(), Failure> {
    let found: Vec<Deviation> = get(context, &format!("/v1/deviations?deep={deep}"))?;
    context.print(&found, |found| found.iter().map(deviation).collect())?;
    if found.is_empty() { Ok(()) } else { Err(Failure::Differs) }
}

fn deviation(Deviation { node, fault }: &Deviation) -> String {
    let Fault { thing, cause, remedy, .. } = fault;
    format!("{node}: {thing}: {cause}\n    remedy: {remedy}\n")
}

fn nodes(context: &Context) -> Result<(), Failure> {
    let nodes: Vec<DomainNodeView> = get(context, "/v1/nodes")?;
    context.print(&nodes, |nodes| {
        let mut table = Table::new(&["NODE", "SITE", "STATE", ">PARTS", ">WANTED"]);
        for DomainNodeView { name, site, alive, parts } in nodes {
            let state = if *alive { "here" } else { "away" };
            table.row(vec![
                name.clone(),
                site.clone(),
                state.into(),
                parts.0.to_string(),
                parts.1.to_string(),
            ]);
        }
        table.to_string()
    })
}

fn token(context: &Context, command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::Add { nodes, for_s } => {
            let spec = JoinTokenSpec { nodes, for_s };
            let made = context.controller.send(Method::POST, "/v1/tokens", &spec);
            shown_once(context, &made.map_err(of_controller)?)
        }
        TokenCommand::List => {
            let tokens: Vec<JoinTokenView> = get(context, "/v1/tokens")?;
            context.print(&tokens, |tokens| {
                let mut table = Table::new(&["TOKEN", "GOOD UNTIL", "NODE", "JOINED FROM"]);
                for JoinTokenView { id, until_s, nodes } in tokens {
                    for (node, from) in nodes {
                        let from = from.clone().unwrap_or_else(|| "-".into());
                        table.row(vec![id.clone(), moment(*until_s), node.clone(), from]);
                    }
                }
                table.to_string()
            })
        }
        TokenCommand::Del { id } => {
            delete(context, &format!("/v1/tokens/{}", quoted(&id)))?;
            said(context, &format!("token {id} removed\n"))
        }
    }
}

fn user(context: &Context, command: UserCommand) -> Result<(), Failure> {
    match command {
        UserCommand::Add { name, tenant, role, for_s } => {
            let role: Role = role.parse().expect("clap has checked the word");
            let spec = UserSpec { tenant, role, for_s };
            let made = context.controller.send(Method::PUT, &path_of(&name), &spec);
            shown_once(context, &made.map_err(of_controller)?)
        }
        UserCommand::List => {
            let users: Vec<UserView> = get(context, "/v1/users")?;
            context.print(&users, |users| {
                let mut table = Table::new(&["USER", "TENANT", "ROLE", "GOOD UNTIL"]);
                for UserView { name, tenant, role, until_s } in users {
                    table.row(vec![
                        name.clone(),
                        tenant.clone().unwrap_or_else(|| "-".into()),
                        role.word().into(),
                        until_s.map(moment).unwrap_or_default(),
                    ]);
                }
                table.to_string()
            })
        }
        UserCommand::Password { name } => {
            let spec = PasswordSpec { password: secret::password(&name)? };
            let path = format!("{}/password", path_of(&name));
            let done: Result<(), _> = context.controller.send(Method::PUT, &path, &spec);
            done.map_err(of_controller)?;
            said(context, &format!("user {name} has a new password\n"))
        }
        UserCommand::Del { name } => {
            delete(context, &path_of(&name))?;
            said(context, &format!("user {name} removed\n"))
        }
    }
}

fn path_of(user: &str) -> String {
    format!("/v1/users/{}", quoted(user))
}

/// The token alone, so that it goes into a file as it is.
fn shown_once(context: &Context, made: &NewToken) -> Result<(), Failure> {
    context.print(made, |made| format!("{}\n", made.token))
}

fn line(line: &AuditLine) -> String {
    let AuditLine { number, at_s, who, what, status, refused } = line;
    let outcome = refused.as_deref().unwrap_or("done");
    format!("{number:>6} {} {who}: {what}: {status} {outcome}\n", moment(*at_s))
}

fn moment(at_s: u64) -> String {
    events::moment(UNIX_EPOCH + Duration::from_secs(at_s))
}

fn get<T: DeserializeOwned>(context: &Context, path: &str) -> Result<T, Failure> {
    context.controller.get(path).map_err(of_controller)
}

fn delete(context: &Context, path: &str) -> Result<(), Failure> {
    context.controller.delete(path).map_err(of_controller)
}

fn said(context: &Context, text: &str) -> Result<(), Failure> {
    if context.json { Ok(()) } else { out(text) }
}
