#include "privacy/verify/method_kinds.hpp"

#include <cmath>
#include <string>

#include "privacy/verify/statements.hpp"

namespace cudp::verify {

Kinds kinds_of(const StatedNumbers& c) {
  static const std::set<std::string> engines = {
      "dpsgd",   "dpsgd-ts", "dpsgd-decay", "dpsgd-quantile", "adp-sgd",
      "adaclip", "dpis",     "sgd-ma",      "sgd-adv",        "norm-bound"};
  Kinds k;
  k.engine = engines.contains(c.method);
  k.known = k.engine || c.method == "dp-agd" || c.method == "outpert" || c.method == "objpert" ||
            c.method == "privgene";
  if (c.size_noise > 0.0) k.host_streams.insert(kSize);
  if (c.feature_noise > 0.0) k.host_streams.insert({kCovariance, kMoments});
  if (c.method == "dpsgd-quantile") k.host_streams.insert(kCount);
  if (c.method == "dpis") k.host_streams.insert({kNormTotal, kLargestNorms});
  if (c.method == "dp-agd" || c.method == "outpert") k.host_streams.insert(kNoise);
  k.choices = c.method == "dp-agd" || c.method == "privgene";
  return k;
}

std::uint64_t steps_per_epoch(const StatedNumbers& c, const Settings& settings) {
  const double batch = settings.empty() ? c.expected_batch : settings.number("batch");
  const double steps = batch > 0.0 ? std::round(c.size / batch) : 1.0;
  return steps >= 1.0 ? static_cast<std::uint64_t>(steps) : 1;
}

void check_certificate(const StatedNumbers& certificate, const Charges* charges,
                       const Settings& settings, const Kinds& kinds, Bounds& bounds,
                       Findings& findings) {
  if (!kinds.known) findings.add("kinds", "method " + certificate.method + " is not known");
  check_statements(certificate, charges, settings, kinds.engine, bounds, findings);
}

}  // namespace cudp::verify
