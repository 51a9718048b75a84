//! Answers to what controllers ask of steering.

use super::news::shown;
use super::{Permit, Refused, Teller};
use crate::agent::peer::Peer;
use openflow::steering::{Events, Message, PlaceMod, Reply, Request, SteerError};
use openflow::{ErrorCode, Experimenter, Fault, Role};
use std::sync::Arc;

/// What came: the body of an experimenter message or of an experimenter multipart.
pub enum Question {
    /// A message.
    Message(Experimenter),
    /// A multipart request.
    Request(Experimenter),
}

/// What to say to it.
pub enum Answer {
    /// Nothing: it is done.
    Done,
    /// A message.
    Message(Message),
    /// The parts of a multipart reply.
    Parts(Vec<Experimenter>),
    /// Nothing; and to tell of news from now on, in place of what was told of before.
    Tell(Teller),
}

/// Answers a question; without a permit the switch knows no experimenter.
///
/// # Errors
/// The error to answer with.
pub async fn answer(
    permit: Option<&Permit>,
    peer: &Arc<Peer>,
    question: Question,
) -> Result<Answer, Refused> {
    let unknown = || {
        let what = "an experimenter that suiro does not know";
        Fault::new(ErrorCode::BadRequestBadExperimenter, what)
    };
    let permit = permit.ok_or_else(unknown)?;
    match question {
        Question::Message(message) => to_message(permit, peer, Message::decode(&message)?).await,
        Question::Request(request) => {
            let reply = to_request(permit, Request::decode(&request)?).await?;
            let too_long = |error: openflow::EncodeError| {
                Refused::new(SteerError::Unsupported, error.to_string())
            };
            reply.encode().map(Answer::Parts).map_err(too_long)
        }
    }
}

async fn to_message(
    permit: &Permit,
    peer: &Arc<Peer>,
    message: Message,
) -> Result<Answer, Refused> {
    let host = permit.desk.host();
    match message {
        Message::HostInfoRequest => {
            let info = shown(host.info().await?, permit.may_program);
            Ok(Answer::Message(Message::HostInfo(info)))
        }
        Message::Subscribe(events) if Events::all().contains(events) => {
            Ok(Answer::Tell(Teller::start(permit, peer, events)))
        }
        Message::PlaceMod(change) => {
            may_change(permit, peer, &change)?;
            host.change(change).await.map(|()| Answer::Done)
        }
        Message::Subscribe(_) => Err(bad_type("an event that this version does not define")),
        Message::HostInfo(_) | Message::VmStatus(_) => {
            Err(bad_type("a message that only a switch sends"))
        }
    }
}

fn bad_type(what: &'static str) -> Refused {
    Fault::new(ErrorCode::BadRequestBadExpType, what).into()
}

fn may_change(permit: &Permit, peer: &Peer, change: &PlaceMod) -> Result<(), Refused> {
    if peer.role() == Role::Slave {
        return Err(Fault::new(ErrorCode::BadRequestIsSlave, "a slave may only read").into());
    }
    if !permit.may_program {
        let what = "this switch's controllers may only read: suiro switch mod --steering program";
        return Err(Refused::new(SteerError::NotAllowed, what));
    }
    Ok(change.check()?)
}

async fn to_request(permit: &Permit, request: Request) -> Result<Reply, Refused> {
    let host = permit.desk.host();
    Ok(match request {
        Request::VmInfo(id) => {
            let mut vms = host.vms().await?;
            vms.retain(|vm| id == 0 || vm.id == id);
            Reply::VmInfo(vms)
        }
        Request::CoreStats(core) => {
            let mut cores = host.core_stats().await?;
            cores.retain(|stats| core.is_none_or(|core| core == stats.core));
            if cores.is_empty() && core.is_some() {
                return Err(Refused::new(SteerError::BadCore, "no such core"));
            }
            Reply::CoreStats(cores)
        }
        Request::PlacementStats(request) => Reply::PlacementStats(host.placements(request).await?),
    })
}
