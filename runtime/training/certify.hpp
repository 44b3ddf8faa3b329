#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "privacy/ledger.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Returns warnings, for the certificate and stderr, if the guarantee is weak (large epsilon or
/// delta). training_size: the number of examples if it is public, else its noisy value.
std::vector<std::string> privacy_warnings(double training_size, double epsilon, double delta);

/// Makes the certificate of a finished run. ledger: everything that was charged, which is more than
/// planned if a key was lost. released: the noisy values that were released. step: number of steps
/// done.
privacy::Certificate make_certificate(const Experiment& experiment, const TrainingSize& size,
                                      const Method& method, const privacy::Ledger& ledger,
                                      const std::vector<privacy::NoisyValue>& released,
                                      std::uint64_t step);

/// Makes the certificate of a run in progress; it states that the run is not finished. Its epsilon
/// is that of the run if it ends at `last_step` as planned, or, if a privacy filter enforces the
/// budget, the budget.
privacy::Certificate make_plan_certificate(const Experiment& experiment, const TrainingSize& size,
                                           const Method& method, const privacy::Ledger& ledger,
                                           const std::vector<privacy::NoisyValue>& released,
                                           std::uint64_t step, std::uint64_t last_step);

/// Makes the certificate of a run that ended with an error after the number of its training
/// examples was released with noise. That number is its only release.
privacy::Certificate make_refusal_certificate(const Experiment& experiment,
                                              const TrainingSize& size,
                                              const privacy::Ledger& ledger);

}  // namespace cudp
