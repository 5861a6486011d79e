//! Bytes of the last state that was found in force, from which an owner writes it again if the topic loses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::journal::content::{RolePart, SharedBytes, State};
use crate::journal::key::BlobId;
use crate::journal::record::Seal;
use crate::journal::view::PartitionView;

/// A seal and the bytes of its blobs, shared with the view that has read them.
#[derive(Debug)]
pub struct KeptSeal {
    seal: Arc<Seal>,
    /// Bytes that were read at any time.
    blobs: BTreeMap<BlobId, SharedBytes>,
}

impl KeptSeal {
    /// Collects the bytes of a seal. Bytes that it shares with the previous seal are not compared again.
    pub fn of(seal: &Arc<Seal>, view: &PartitionView, before: Option<&KeptSeal>) -> KeptSeal {
        let known = before.map(|before| &before.blobs);
        let blobs = seal.entries().filter_map(|entry| {
            let known = known.and_then(|known| known.get(&entry.blob));
            let bytes = known.or_else(|| view.part(entry))?;
            Some((entry.blob, Arc::clone(bytes)))
        });
        KeptSeal {
            blobs: blobs.collect(),
            seal: Arc::clone(seal),
        }
    }

    /// Returns whether it is the state of this seal, in the same blobs.
    pub fn is_of(&self, seal: &Arc<Seal>) -> bool {
        Arc::ptr_eq(&self.seal, seal) || self.seal == *seal
    }

    pub fn content(&self) -> u128 {
        self.seal.content
    }

    /// Returns whether the topic still has all blobs with the bytes that were read. Compares pointers, because a view
    /// replaces an allocation only if the bytes differ.
    pub fn is_whole(&self, view: &PartitionView) -> bool {
        self.seal.entries().all(|entry| {
            let bytes = self.blobs.get(&entry.blob).zip(view.blob(entry.blob));
            bytes.is_some_and(|(kept, read)| Arc::ptr_eq(kept, read))
        })
    }

    /// The state that can be sealed again; none if not all of it was ever read.
    pub fn state(&self) -> Option<State> {
        let mut parts = BTreeMap::new();
        for (role, entries) in &self.seal.table {
            let of_role = entries.iter().map(|entry| {
                let bytes = Arc::clone(self.blobs.get(&entry.blob)?);
                Some(RolePart {
                    bytes,
                    hash: entry.hash,
                })
            });
            parts.insert(Arc::clone(role), of_role.collect::<Option<Vec<RolePart>>>()?);
        }
        Some(State {
            header: self.seal.header.clone(),
            parts,
            content: self.seal.content,
        })
    }
}
