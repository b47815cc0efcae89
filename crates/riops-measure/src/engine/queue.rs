//! A queue that is nearly always empty or has one element.

use std::collections::VecDeque;

/// A queue whose first element is stored inline: a session with one transaction in flight touches no other memory.
#[derive(Debug)]
pub(super) struct Queue<T> {
    first: Option<T>,
    /// The elements after the first; none without a first one.
    rest: VecDeque<T>,
}

impl<T> Queue<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { first: None, rest: VecDeque::with_capacity(capacity.saturating_sub(1)) }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    #[inline]
    pub(super) fn push(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.rest.push_back(element);
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let first = self.first.take();
        if first.is_some() && !self.rest.is_empty() {
            self.first = self.rest.pop_front();
        }
        first
    }

    #[inline]
    pub(super) fn first_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    #[inline]
    pub(super) fn last(&self) -> Option<&T> {
        self.rest.back().or(self.first.as_ref())
    }

    #[inline]
    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    /// Returns the elements in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_elements_in_order() {
        let mut queue = Queue::with_capacity(1);
        assert!(queue.is_empty() && queue.pop().is_none() && queue.last().is_none());
        for round in 0..3 {
            (0..=round).for_each(|element| queue.push(element));
            assert_eq!((queue.len(), queue.last()), (round + 1, Some(&round)));
            assert_eq!(queue.first_mut(), Some(&mut 0));
            assert_eq!(queue.iter().copied().collect::<Vec<_>>(), (0..=round).collect::<Vec<_>>());
            assert_eq!(std::iter::from_fn(|| queue.pop()).count(), round + 1);
            assert!(queue.is_empty());
        }
    }
}
