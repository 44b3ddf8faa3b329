#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/bounds.hpp"
#include "privacy/verify/findings.hpp"

namespace cudp::verify {

/// The files of a finished run, each as text, that a checker compares. The transcript is a log of
/// everything that the run did, including secrets.
struct Evidence {
  std::string certificate;  ///< content of release/privacy.json
  /// Content of private/ledger, the list of charged releases; any authentication code is ignored.
  std::string ledger;
  std::string transcript;
  /// Content of release/config.toml. Needed to check schedules, optimizers, averages and the key's
  /// seed.
  std::string settings = {};
  /// Content of release/metrics.jsonl (epsilon and metrics after each epoch); used by the checks
  /// without a transcript.
  std::string rows = {};
  /// Content of release/holdout.json; used by the checks without a transcript. nullopt: no such
  /// file.
  std::optional<std::string> holdout = {};
};

/// Result of checking a run.
struct Verdict {
  std::vector<Finding> findings;  ///< empty: every check passed
  std::uint64_t releases = 0;     ///< number of releases checked
  /// Number of released numbers whose noise was drawn again from the random key and compared.
  std::uint64_t numbers = 0;
  std::uint64_t updates = 0;
  /// Epsilon of the certificate's releases, recomputed by the accountant or by the privacy filter;
  /// nullopt if neither applies.
  std::optional<double> epsilon;
  /// Checks that were skipped because files lack the data for them, with the reason.
  std::vector<std::string> skipped;
};

/// Checks a seeded run against its certificate, by an independent implementation of every public
/// algorithm: generators from the RFC and the paper, rounded normals in multiple precision, the
/// sampler's use of random words, optimizers in double. Includes nothing of runtime/ or kernels/.
///
/// Rules:
/// - `noise`: released values minus the sums are the rounded noise of that stream at that step, at
///   the stated standard deviation; both are multiples of the stated grid;
/// - `sensitivity`: the norm of a sum of n examples is at most n times the stated sensitivity;
/// - `twice`: no stream and step are used under one key for two different sums;
/// - `batch`: the examples drawn are those of the stated rate, which follows from batch and size;
/// - `divisor`: sums are divided by the expected batch;
/// - `charged`: the ledger's file had the charge before the release;
/// - `ledger`: the certificate lists what was charged;
/// - `kinds`: every release is of a kind that the certificate lists, with the same number of each;
/// - `update`: parameters, moments and averages follow from releases and public numbers;
/// - `epsilon`: the certificate's epsilon is not below the accountant's bound for its releases.
///
/// Throws std::invalid_argument if the evidence cannot be read.
Verdict check(const Evidence& evidence);

/// Checks a run that has no transcript, using the certificate's statements alone: that its noise,
/// sampling rate, divisor and epsilon agree with each other, and that it lists what the ledger
/// charged (rules `noise`, `batch`, `divisor`, `ledger` and `epsilon`). Ignores
/// evidence.transcript. An empty ledger counts as missing. bounds: computes the epsilon that the
/// ledger's releases cost. Throws std::invalid_argument if the evidence cannot be read.
Verdict check_statements(const Evidence& evidence, Bounds& bounds);

}  // namespace cudp::verify
