//! `cluster`: the nodes of a service, looked at and changed.
//!
//! Everything goes over HTTP to a node that is in touch with its leader, which it asks. Changes that only have to wait (for another
//! one, or for a leader that hands over) are asked for again until the time is over.

use std::time::Duration;

use leasehold::core::Millis;
use leasehold_api::Number;
use leasehold_api::code::Kind;
use leasehold_api::view::{Changed, Cluster, LocalCluster, Member, Transferred};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::nodes::{Look, Nodes, passed};
use crate::args::{AddArgs, ClusterCommand};
use crate::console::{Console, Table};
use crate::exit::Exit;
use crate::place::Place;
use crate::trouble::Trouble;
use crate::words;

/// Between two questions about the same thing.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long a learner is waited for if nobody says how long.
const CATCH_UP_TIME: Duration = Duration::from_secs(5 * 60);
/// A learner that is not further behind has caught up.
const CAUGHT_UP: u64 = 64;
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];

/// Of one that the leader has never heard of nothing is known, and all of the log would be a wrong number.
fn shown_behind(member: &Member) -> String {
    let is_known = member.matched.0 != 0 || member.reachable;
    if is_known { member.behind.to_string() } else { "-".to_owned() }
}

fn named<'a>(cluster: &'a Cluster, name: &str) -> Option<&'a Member> {
    cluster.members.iter().find(|member| member.name == name)
}

pub(super) async fn run(console: &Console, place: &Place, command: &ClusterCommand) -> Result<Exit, Trouble> {
    let asking = Asking { console, nodes: Nodes::of(place)?, timeout: place.timeout };
    match command {
        ClusterCommand::Status => asking.status().await,
        ClusterCommand::Add(args) => asking.add(args).await,
        ClusterCommand::Promote { name, wait } => asking.promote(name, wait.unwrap_or_default()).await,
        ClusterCommand::Remove { name } => asking.remove(name).await,
        ClusterCommand::Transfer { name } => asking.transfer(name.as_deref()).await,
    }
}

struct Asking<'a> {
    console: &'a Console,
    nodes: Nodes,
    timeout: Duration,
}

impl Asking<'_> {
    async fn status(&self) -> Result<Exit, Trouble> {
        let status = match self.nodes.cluster().await {
            Ok(status) => status,
            Err(trouble) if [Exit::UNREACHABLE, Exit::UNKNOWN].contains(&trouble.exit()) => {
                return self.local_status(trouble).await;
            }
            Err(trouble) => return Err(trouble),
        };
        for other in self.nodes.look().await.other_lives() {
            self.console.remark("other-life", &other);
        }
        let row = |member: &Member| {
            [
                member.name.clone(),
                member.role.clone(),
                if member.leader { "*" } else { "-" }.to_owned(),
                member.address.clone(),
                if member.reachable { "yes" } else { "NO" }.to_owned(),
                shown_behind(member),
                if member.receiving_snapshot { "under way" } else { "-" }.to_owned(),
            ]
        };
        let columns = ["NAME", "ROLE", "LEADS", "ADDRESS", "REACHABLE", "BEHIND", "SNAPSHOT"];
        let table = Table::new(columns, status.members.iter().map(row));
        let Cluster { incarnation, epoch, term, committed, leader, .. } = &status;
        let (term, committed, leader) = (term.0, committed.0, leader.as_deref().unwrap_or("nobody"));
        let mut head =
            format!("cluster {incarnation} epoch {epoch} term {term} committed {committed} led by {leader}");
        if let Some(left) = status.restore_wait_ms {
            head.push('\n');
            head.push_str(&words::restore_wait(Millis::new(left)));
        }
        self.console.framed_table(&head, &table, "", &status)
    }

    /// Nobody leads: what each node that answers knows by itself.
    async fn local_status(&self, trouble: Trouble) -> Result<Exit, Trouble> {
        let looks = self.nodes.look_further().await;
        if looks.anybody().is_none() {
            return Err(trouble);
        }
        let (mut rows, mut nodes) = (Vec::new(), Vec::new());
        for Look { asked, found } in looks.0 {
            let (row, json) = match found {
                Ok(local) if local.members.is_empty() => {
                    let why = self.nodes.not_ready(&asked).await.unwrap_or_else(|| "none yet".to_owned());
                    let json = json!({ "asked": asked, "local": local, "why": why });
                    (row(&local, &asked, why), json)
                }
                Ok(local) => {
                    (row(&local, &asked, members(&local)), json!({ "asked": asked, "local": local }))
                }
                Err(why) => {
                    let json = json!({ "asked": asked, "why": why });
                    let [name, role, applied, leader] = ["-"; 4].map(str::to_owned);
                    ([asked, name, role, applied, leader, why], json)
                }
            };
            rows.push(row);
            nodes.push(json);
        }
        let table = Table::new(["NODE", "NAME", "ROLE", "APPLIED", "SEES LEADING", "MEMBERS"], rows);
        let head = "no leader: nothing is granted or confirmed. What each node knows by itself:";
        self.console.framed_table(head, &table, "", &json!({ "leader": null, "nodes": nodes }))?;
        // As everything else that needs a leader ends.
        Ok(Exit::UNREACHABLE)
    }

    async fn add(&self, args: &AddArgs) -> Result<Exit, Trouble> {
        let (name, address) = (&args.node.name, &args.node.address);
        let body = json!({ "name": name, "address": address });
        let is_there =
            |status: &Cluster| named(status, name).is_some_and(|member| member.address == *address);
        let revision = self.change("/v1/cluster/add", &body, self.timeout, &[], is_there).await?;
        let wait = args.wait.or(args.promote.then_some(CATCH_UP_TIME));
        if let Some(wait) = wait {
            self.wait_for(name, wait).await?;
        }
        if args.promote {
            return self.promote(name, wait.unwrap_or(CATCH_UP_TIME)).await;
        }
        let text = format!("{name} at {address} is a learner from revision {} on", revision.0);
        self.changed(&text, name, "learner", revision)
    }

    async fn promote(&self, name: &str, wait: Duration) -> Result<Exit, Trouble> {
        let again: &[&str] = if wait.is_zero() { &[] } else { &["not-caught-up"] };
        let (limit, body) = (wait.max(self.timeout), json!({ "name": name }));
        let votes = |status: &Cluster| named(status, name).is_some_and(|member| member.role == "voter");
        let revision = match self.change("/v1/cluster/promote", &body, limit, again, votes).await {
            Ok(revision) => revision,
            Err(trouble) => return Err(self.why_not(trouble, Some(name), "promotion").await),
        };
        let text = format!("{name} is a voter from revision {} on", revision.0);
        self.changed(&text, name, "voter", revision)
    }

    async fn remove(&self, name: &str) -> Result<Exit, Trouble> {
        let (path, body) = ("/v1/cluster/remove", json!({ "name": name }));
        let is_gone = |status: &Cluster| named(status, name).is_none();
        let revision = self.change(path, &body, self.timeout, &["handing-over"], is_gone).await?;
        let text = format!("{name} is no member from revision {} on", revision.0);
        self.changed(&text, name, "removed", revision)
    }

    async fn transfer(&self, to: Option<&str>) -> Result<Exit, Trouble> {
        let asked = self.nodes.ask("/v1/cluster/transfer", &json!({ "to": to })).await;
        let transferred: Transferred = match asked {
            Ok(transferred) => transferred,
            Err(trouble) => return Err(self.why_not(trouble, to, "handover").await),
        };
        let leader = match &transferred.leader {
            Some(leader) => leader.clone(),
            // A node that was asked may not know the name of a new one.
            None => {
                let looked = self.nodes.cluster().await.ok().and_then(|status| status.leader);
                looked.unwrap_or_else(|| transferred.leader_id.clone())
            }
        };
        self.console.result(format_args!("{leader} leads"), &transferred)
    }

    /// Says it better, if the node that was meant is out of reach: the service's own words are about all the others.
    async fn why_not(&self, trouble: Trouble, name: Option<&str>, what: &str) -> Trouble {
        let (code, kind) = trouble.code();
        let unknown = kind == Kind::Unknown;
        if !unknown && !["not-caught-up", "nobody-to-take-over"].contains(&code) {
            return trouble;
        }
        let status = self.nodes.cluster().await.ok();
        let member =
            status.as_ref().and_then(|status| named(status, name?)).filter(|member| !member.reachable);
        match member.map(out_of_reach) {
            // It may have been done all the same.
            Some(why) if unknown => {
                Trouble::Answered { code: code.to_owned(), kind, message: format!("{trouble}; {why}") }
            }
            Some(why) => Trouble::answered("node-unreachable", format!("no {what}: {why}")),
            None => trouble,
        }
    }

    fn changed(&self, text: &str, name: &str, role: &'static str, revision: Number) -> Result<Exit, Trouble> {
        self.console.result(text, &object! { name, role, revision })
    }

    /// Asks for a change, and asks again while another one is under way or one of these codes is the answer. The node that was asked may
    /// go with its answer (it may be the one that was removed): whether it is so is then looked up, and asked for again if it is not.
    /// Gives back the entry from which on it is so.
    async fn change(
        &self,
        path: &str,
        body: &Value,
        limit: Duration,
        again: &[&str],
        is_so: impl Fn(&Cluster) -> bool,
    ) -> Result<Number, Trouble> {
        let began = leasehold_clock::read();
        loop {
            let trouble = match self.nodes.ask::<Changed>(path, body).await {
                Ok(changed) => return Ok(changed.revision),
                Err(trouble) => trouble,
            };
            let repeats = match trouble.code() {
                (_, Kind::Unknown) => match self.nodes.cluster().await {
                    Ok(status) if is_so(&status) => return Ok(status.committed),
                    looked => looked.is_ok(),
                },
                (code, _) => code == "change-under-way" || again.contains(&code),
            };
            if !repeats || passed(began) >= limit {
                return Err(trouble);
            }
            sleep(ASK_EVERY).await;
        }
    }

    /// Waits until a learner has nearly all of the log.
    async fn wait_for(&self, name: &str, limit: Duration) -> Result<(), Trouble> {
        let began = leasehold_clock::read();
        let mut wheel = SPINNER.iter().cycle();
        if !self.console.can_animate() {
            let event = json!({ "event": "catching-up", "name": name });
            self.console.note(format_args!("waiting until {name} has caught up"), &event);
        }
        loop {
            let status = self.nodes.cluster().await?;
            let member = named(&status, name)
                .ok_or_else(|| Trouble::answered("no-such-member", format!("{name} was removed")))?;
            let done = member.matched.0 != 0 && member.behind <= CAUGHT_UP && !member.receiving_snapshot;
            if done {
                self.console.clear_progress();
                return Ok(());
            }
            let (mark, behind) = (wheel.next().unwrap_or(&' '), member.behind);
            let how = if member.receiving_snapshot { "receives a snapshot" } else { "catches up" };
            self.console.progress(format_args!("{mark} {name} {how}: {behind} entries behind"));
            if passed(began) >= limit {
                let message = format!("{name} is {behind} entries behind after {limit:?}; it is a learner");
                return Err(Trouble::answered("not-caught-up", message));
            }
            sleep(ASK_EVERY).await;
        }
    }
}

/// What to do about a node that its leader does not hear of.
fn out_of_reach(member: &Member) -> String {
    let Member { name, address, .. } = member;
    let next = if member.role == "learner" {
        format!(
            "start it with `leasehold serve --join --name {name}`, or give it up with `leasehold cluster remove {name}`"
        )
    } else {
        "start it, or name another; `leasehold cluster status` shows who is reachable".to_owned()
    };
    format!("{name} at {address} does not answer the leader; {next}")
}

fn members(local: &LocalCluster) -> String {
    let each = local.members.iter().map(|member| format!("{}={}", member.name, member.address));
    each.collect::<Vec<String>>().join(",")
}

/// One line of what a node knows by itself.
fn row(local: &LocalCluster, asked: &str, members: String) -> [String; 6] {
    let role = local.members.iter().find(|member| member.id == local.id).map(|member| member.role.clone());
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let (name, role, leader) = (or_none(&local.name), or_none(&role), or_none(&local.leader));
    [asked.to_owned(), name, role, local.applied.0.to_string(), leader, members]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_node_is_behind_is_not_shown_before_anything_is_known() {
        let member = |matched: u64, reachable: bool| Member {
            name: "n2".into(),
            id: "2".into(),
            address: "b:1".into(),
            role: "voter".into(),
            leader: false,
            reachable,
            matched: matched.into(),
            behind: 68,
            receiving_snapshot: false,
        };
        let shown = [(0, false), (0, true), (7, false)].map(|(m, r)| shown_behind(&member(m, r)));
        assert_eq!(shown, ["-", "68", "68"]);
    }
}
