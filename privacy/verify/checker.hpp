#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "privacy/verify/bounds.hpp"
#include "privacy/verify/findings.hpp"

namespace cudp::verify {

/// The files that a run left, as text, and its transcript.
struct Evidence {
  std::string certificate;  ///< release/privacy.json
  std::string ledger;       ///< private/ledger, with or without its seal
  std::string transcript;
  /// release/config.toml: with it schedules, optimizers, averages and the key's seed are held too.
  std::string settings = {};
  std::string rows = {};  ///< release/metrics.jsonl, for what is held without a transcript
  std::optional<std::string> holdout = {};  ///< release/holdout.json, likewise; empty: no such file
};

struct Verdict {
  std::vector<Finding> findings;  ///< none: nothing speaks against the certificate
  std::uint64_t releases = 0;     ///< looked at
  std::uint64_t numbers = 0;      ///< whose noise was drawn again
  std::uint64_t updates = 0;
  /// Epsilon of the certificate's releases, by the accountant or the filter; none where neither
  /// counts it.
  std::optional<double> epsilon;
  std::vector<std::string> skipped;  ///< what the evidence does not allow to be held, and why
};

/// Holds a seeded run against its certificate, by a second implementation of all that is public:
/// generators from the RFC and the paper, rounded normals by multiprecision, the sampler's words,
/// optimizers in double. It includes nothing of runtime/ or kernels/.
///
/// Rules:
/// - `noise`: what left minus the sums is the rounded noise of that stream at that step, at the
///   standard deviation and on the grid that the certificate states;
/// - `sensitivity`: sums are no longer than as many times the stated sensitivity as there are
///   examples in them;
/// - `twice`: no stream and step under one key for two sums;
/// - `batch`: the examples drawn are those of the stated rate, and it follows from batch and size;
/// - `divisor`: sums are divided by the expected batch;
/// - `charged`: the ledger's file had the charge before;
/// - `ledger`: the certificate lists what was charged;
/// - `kinds`: every release is of a kind that the certificate lists, as often;
/// - `update`: parameters, moments and averages follow from releases and public numbers;
/// - `epsilon`: the certificate's epsilon is not below what the accountant finds for its releases.
///
/// Throws std::invalid_argument where the evidence cannot be read.
Verdict check(const Evidence& evidence);

/// The rules `noise`, `batch`, `divisor`, `ledger` and `epsilon` of what is stated, for a run that
/// has no transcript: that of the evidence is not looked at. An empty ledger is none. Throws what
/// check throws.
Verdict check_statements(const Evidence& evidence, Bounds& bounds);

}  // namespace cudp::verify
