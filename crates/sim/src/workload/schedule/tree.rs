//! Trees: data go up to the root, each rank waiting for its children, and down again.
//!
//! The tree is binary: rank v has the children 2 v + 1 and 2 v + 2. A broadcast goes down only, from its
//! root, whose number is taken off the others' (modulo n), and a reduce goes up only, to its root. With a
//! `chunk` the pieces follow each other.
//!
//! Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
//! IJHPCA 2005 (reduce and broadcast).

use super::{
    AlgorithmParameters, Asked, Kind, Lanes, Law, Phases, Schedule, Transfer, WorkloadError, numbered,
};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeParameters;

impl AlgorithmParameters for TreeParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "tree",
        title: "up a binary tree and down again; a broadcast down only, a reduce up only",
        source: "Thakur, Rabenseifner, Gropp, IJHPCA 2005",
        validation: "Times by hand and bytes of every link (tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllReduce, Kind::Broadcast, Kind::Reduce];

    fn read(_: &mut Parameters) -> TreeParameters {
        TreeParameters
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        let n = asked.ranks;
        let rank = |place: u32| (place + asked.root) % n;
        let parents = (0..n).map(|v| (v > 0).then(|| rank((v.max(1) - 1) / 2)));
        let mut parent = vec![None; n as usize];
        parents.enumerate().for_each(|(v, above)| parent[rank(v as u32) as usize] = above);
        let order = (0..n).map(rank).collect();
        Trees::phases(asked, vec![Tree::new(parent, order)])
    }
}

/// One tree over all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// None: the root.
    parent: Vec<Option<u32>>,
    /// The ranks, each after its parent, and the place of each in that order.
    order: Vec<u32>,
    place: Vec<u32>,
    /// The children of rank r are `children[first[r]..first[r + 1]]`, in the order of their places.
    children: Vec<u32>,
    first: Vec<u32>,
}

impl Tree {
    /// `order`: the ranks, each after its parent.
    pub fn new(parent: Vec<Option<u32>>, order: Vec<u32>) -> Tree {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &rank)| place[rank as usize] = at as u32);
        let mut first = vec![0; order.len() + 1];
        parent.iter().flatten().for_each(|&above| first[above as usize + 1] += 1);
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let (mut next, mut children) = (first.clone(), vec![0; order.len().saturating_sub(1)]);
        for &rank in &order {
            if let Some(above) = parent[rank as usize] {
                children[next[above as usize] as usize] = rank;
                next[above as usize] += 1;
            }
        }
        Tree { parent, order, place, children, first }
    }

    fn children(&self, rank: u32) -> &[u32] {
        &self.children[self.first[rank as usize] as usize..self.first[rank as usize + 1] as usize]
    }
}

/// Several trees, over which the lanes are dealt out.
#[derive(Debug, Clone, PartialEq)]
pub struct Trees {
    n: u32,
    trees: Arc<Vec<Tree>>,
    lanes: Lanes,
    /// Whether data go up, and whether they then come down.
    up: bool,
    down: bool,
    messages: u32,
}

/// A message of a tree: over the edge between a rank and its parent.
struct Edge<'t> {
    up: bool,
    lane: u32,
    tree: &'t Tree,
    child: u32,
}

impl Trees {
    pub fn phases(asked: &Asked, trees: Vec<Tree>) -> Result<Phases, WorkloadError> {
        // Every tree takes its share of every channel.
        let count = trees.len() as u32;
        let lanes = Asked { channels: asked.channels * count, ..*asked }.lanes(1)?;
        let (up, down) = (asked.kind != Kind::Broadcast, asked.kind != Kind::Reduce);
        let directions = u128::from(up) + u128::from(down);
        let messages = numbered(directions * u128::from(asked.ranks - 1) * u128::from(lanes.count))?;
        Ok(Law::Trees(Trees { n: asked.ranks, trees: Arc::new(trees), lanes, up, down, messages }).into())
    }

    /// Number of the connection of a lane. With C channels, tree t has connections t C to t C + C - 1. Each
    /// channel and its NIC thereby carry all trees: a rank inside a tree sends three times as much as a leaf.
    fn channel(&self, lane: u32) -> u32 {
        let (trees, at) = (self.trees.len() as u32, self.lanes.channel(lane));
        at % trees * (self.lanes.channels / trees) + at / trees
    }

    fn tree(&self, lane: u32) -> &Tree {
        &self.trees[lane as usize % self.trees.len()]
    }

    /// Lanes that a tree carries.
    fn lanes_of(&self, tree: usize) -> u32 {
        let (count, trees) = (self.lanes.count as usize, self.trees.len());
        (count / trees + usize::from(tree < count % trees)) as u32
    }

    fn edge(&self, message: u32) -> Edge<'_> {
        let (at, lane) = (message / self.lanes.count, message % self.lanes.count);
        let (tree, edges) = (self.tree(lane), self.n - 1);
        // Up from the last rank of the order to the first, down from the first to the last.
        let up = self.up && at < edges;
        let place = if up { edges - at } else { at % edges + 1 };
        Edge { up, lane, tree, child: tree.order[place as usize] }
    }

    fn number(&self, up: bool, child: u32, lane: u32) -> u32 {
        let (place, edges) = (self.tree(lane).place[child as usize], self.n - 1);
        let at = match (up, self.up) {
            (true, _) => edges - place,
            (false, true) => edges + place - 1,
            (false, false) => place - 1,
        };
        at * self.lanes.count + lane
    }

    fn down_from(&self, rank: u32, lane: u32, out: &mut Vec<u32>) {
        out.extend(self.tree(lane).children(rank).iter().map(|&child| self.number(false, child, lane)));
    }
}

impl Schedule for Trees {
    fn messages(&self) -> u32 {
        self.messages
    }

    fn transfer(&self, message: u32) -> Transfer {
        let Edge { up, lane, tree, child } = self.edge(message);
        let parent = tree.parent[child as usize].unwrap_or(child);
        let (from, to) = if up { (child, parent) } else { (parent, child) };
        Transfer { from, to, bytes: self.lanes.share(lane), channel: self.channel(lane) }
    }

    fn opens(&self, rank: u32, out: &mut Vec<u32>) {
        for lane in 0..self.lanes.count {
            let tree = self.tree(lane);
            match (self.up, tree.parent[rank as usize]) {
                (true, Some(_)) if tree.children(rank).is_empty() => out.push(self.number(true, rank, lane)),
                (false, None) => self.down_from(rank, lane, out),
                _ => {}
            }
        }
    }

    fn needs(&self, message: u32) -> u32 {
        let Edge { up, tree, child, .. } = self.edge(message);
        let parent = tree.parent[child as usize].unwrap_or(child);
        match (up, tree.parent[parent as usize]) {
            (true, _) => tree.children(child).len() as u32,
            // The root has the sums when all its children have sent them; others when they come down.
            (false, None) if self.up => tree.children(parent).len() as u32,
            (false, None) => 0,
            (false, Some(_)) => 1,
        }
    }

    fn after_arrival(&self, message: u32, out: &mut Vec<u32>) {
        let Edge { up, lane, tree, child } = self.edge(message);
        let receiver = if up { tree.parent[child as usize].unwrap_or(child) } else { child };
        match tree.parent[receiver as usize] {
            Some(_) if up => out.push(self.number(true, receiver, lane)),
            _ if self.down => self.down_from(receiver, lane, out),
            _ => {}
        }
    }

    fn sends(&self, rank: u32) -> u32 {
        let of_tree = |(number, tree): (usize, &Tree)| {
            let up = u32::from(self.up && tree.parent[rank as usize].is_some());
            let down = if self.down { tree.children(rank).len() as u32 } else { 0 };
            self.lanes_of(number) * (up + down)
        };
        self.trees.iter().enumerate().map(of_tree).sum()
    }

    fn receives(&self, rank: u32) -> u32 {
        let of_tree = |(number, tree): (usize, &Tree)| {
            let up = if self.up { tree.children(rank).len() as u32 } else { 0 };
            let down = u32::from(self.down && tree.parent[rank as usize].is_some());
            self.lanes_of(number) * (up + down)
        };
        self.trees.iter().enumerate().map(of_tree).sum()
    }
}
