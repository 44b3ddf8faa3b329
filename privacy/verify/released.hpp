#pragma once
#include <string>
#include <vector>

#include "privacy/verify/checker.hpp"

namespace cudp::verify {

/// One thing that a released run states, held against the rest of what it states.
struct Statement {
  std::string name;
  std::string found;               ///< in short, for people
  std::vector<std::string> wrong;  ///< place, expected, found; empty: it holds
  bool looked_at = true;           ///< false: the files do not allow it, `found` says why
};

/// What a released run states and no file of it can show, in words: it is taken on trust.
std::vector<std::string> taken_on_trust(const Evidence& evidence);

/// Holds what a finished run published of itself: the certificate's epsilon, noise and sampling,
/// the releases that it lists, and the settings. evidence.transcript is not looked at; an empty
/// ledger, and empty rows, are none. Settings must be there.
///
/// - `fields`: each is one that certificates of the method have, and in its range; none is missing;
/// - `epsilon`: not below what its releases come to, nor beyond what the settings ask for; the
/// lower
///   bound, and epsilons of groups, are the accountant's;
/// - `ledger`: what was charged is what the certificate says;
/// - `rows`: epsilon of each row of metrics.jsonl is what had been spent by then;
/// - `noise`, `sampling`: numbers that follow from others do;
/// - `releases`: mechanisms, their noise, number and order are those of the method's rule; as many
///   values of every kind are listed as these pay for;
/// - `held out`: release/holdout.json has the figures that the certificate pays for, of its noise;
/// - `settings`: those that privacy rests on are the certificate's;
/// - `for release`: it says so exactly where nothing speaks against it; its reasons, warnings and
///   assumptions are those of the settings and numbers.
///
/// What follows from the settings by a formula is worked out again, so that a change of one
/// statement is found that makes a promise stronger, or removes one; tests/audit/forger_test.cpp
/// changes them all. Throws std::invalid_argument where a file cannot be read. bounds: keeps what
/// accountants answered, for the next evidence.
std::vector<Statement> check_released(const Evidence& evidence, Bounds& bounds);

}  // namespace cudp::verify
