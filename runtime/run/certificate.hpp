#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/ledger.hpp"
#include "runtime/config/config.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {

/// What a certificate is made from.
struct CertificateFacts {
  TrainConfig config;
  PrivacyPlan plan;
  privacy::Ledger ledger;  ///< what was really spent, which a lost key makes more than was planned
  std::string dataset;
  std::string backend;
  std::string test_set;             ///< what was measured on which examples, in words
  double training_size = 0.0;       ///< N where it is public, else the noisy, accounted size
  std::vector<std::string> unsafe;  ///< flags that weaken the promise
};

/// Why the run must not be released; empty where it may.
std::vector<std::string> release_obstacles(const CertificateFacts& facts);

/// What the promise is too weak for, in words; goes to stderr too. training_size: N where it is
/// public, else the noisy one that was paid for.
std::vector<std::string> privacy_warnings(double training_size, double epsilon, double delta);

/// The first lines of every certificate: format, and whether the run may be released.
nlohmann::ordered_json begin_certificate(const CertificateFacts& facts);

/// release/privacy.json: the promise, and all that is needed to check it. Holds nothing about the
/// training data but what the ledger paid for.
nlohmann::ordered_json make_certificate(const CertificateFacts& facts);

/// The same of a run that was refused once its training examples had been counted with noise: all
/// that it released.
nlohmann::ordered_json make_refusal_certificate(const CertificateFacts& facts);

/// The part of a certificate that does not depend on the method: data, generator, flags, build.
/// Epsilon and delta are there already.
void add_circumstances(nlohmann::ordered_json& certificate, const CertificateFacts& facts);

/// Steps in a ledger: all releases but the noisy size.
std::uint64_t steps_charged(const PrivacyPlan& plan, const privacy::Ledger& ledger);

}  // namespace cudp
