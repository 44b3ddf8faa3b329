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

/// Holds what a finished run published of itself: the certificate's epsilon, noise and sampling,
/// the releases that it lists, and the settings. evidence.transcript is not looked at; an empty
/// ledger, and empty rows, are none. Settings must be there.
///
/// - `epsilon`: not below what its releases come to, nor beyond what the settings ask for;
/// - `ledger`: what was charged is what the certificate says;
/// - `rows`: epsilon of each row of metrics.jsonl is what had been spent by then;
/// - `noise`, `sampling`: numbers that follow from others do;
/// - `releases`: as many values of every kind are listed as its mechanisms pay for;
/// - `settings`: those that privacy rests on are the certificate's;
/// - `for release`: it says so exactly where nothing speaks against it.
///
/// Throws std::invalid_argument where a file cannot be read.
std::vector<Statement> hold_statements(const Evidence& evidence);

}  // namespace cudp::verify
