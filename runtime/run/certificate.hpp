#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/ledger.hpp"
#include "runtime/config.hpp"
#include "runtime/plan.hpp"

namespace cudp {

/// What a certificate is made from.
struct CertificateFacts {
  TrainConfig config;
  PrivacyPlan plan;
  privacy::Ledger ledger;  ///< what was really spent, which a lost key makes more than was planned
  std::string dataset;
  std::string backend;
  double training_size = 0.0;       ///< N where it is public, else the noisy, accounted size
  std::vector<std::string> unsafe;  ///< flags that weaken the promise
};

/// release/privacy.json: the promise, and all that is needed to check it. Holds nothing about the
/// training data but what the ledger paid for.
nlohmann::ordered_json make_certificate(const CertificateFacts& facts);

/// The part of a certificate that does not depend on the method: data, generator, flags, build.
void add_circumstances(nlohmann::ordered_json& certificate, const CertificateFacts& facts);

/// Steps in a ledger: all releases but the noisy size.
std::uint64_t steps_charged(const PrivacyPlan& plan, const privacy::Ledger& ledger);

}  // namespace cudp
