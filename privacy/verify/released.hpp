#pragma once
#include <string>
#include <vector>

#include "privacy/verify/checker.hpp"

namespace cudp::verify {

/// Result of checking one kind of statement in the published files of a run, e.g. those about
/// epsilon.
struct Statement {
  std::string name;
  std::string found;  ///< summary of what the run states
  /// Differences between the statement and the recomputed value: field, expected, found. Empty if
  /// the statement is correct.
  std::vector<std::string> wrong;
  bool is_checked = true;  ///< false: the files do not allow a check; `found` says why
};

/// Returns the statements of a released run that its files cannot prove, as text: they must be
/// trusted.
std::vector<std::string> taken_on_trust(const Evidence& evidence);

/// Checks what a finished run published: the certificate's epsilon, noise and sampling, its list of
/// releases, and the settings. Ignores evidence.transcript. An empty ledger and empty rows count as
/// missing files. Requires settings.
///
/// - `fields`: each field is one of the method's, and in its range; none is missing;
/// - `epsilon`: not below the bound of its releases, nor above the epsilon of the settings; the
///   lower bound and the epsilons of groups are the accountant's;
/// - `ledger`: the certificate states what was charged;
/// - `rows`: epsilon of each row of metrics.jsonl is the epsilon spent by then;
/// - `noise`, `sampling`: numbers that follow from others are correct;
/// - `releases`: mechanisms, their noise, number and order are those of the method's rule; the
///   number of listed values of each kind is what the releases pay for;
/// - `held out`: release/holdout.json has the test results that the certificate pays for, with its
///   noise;
/// - `settings`: those that privacy depends on are the certificate's;
/// - `for release`: stated if and only if no reason forbids it; the reasons, warnings and
///   assumptions follow from the settings and numbers.
///
/// Every number that follows from the settings by a formula is computed again. So a certificate is
/// not accepted if one of its statements was changed to claim more privacy, or if one was removed;
/// tests/audit/forger_test.cpp changes each of them. `bounds` caches the accountants' results for
/// the next call. Throws std::invalid_argument if a file cannot be read.
std::vector<Statement> check_released(const Evidence& evidence, Bounds& bounds);

}  // namespace cudp::verify
