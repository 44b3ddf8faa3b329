#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "privacy/ledger.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Returns warnings for the user and the certificate if the privacy guarantee is weak, i.e. epsilon
/// or delta is large; empty if it is not. training_size: number of training examples, or its noisy
/// estimate if it is private.
std::vector<std::string> privacy_warnings(double training_size, double epsilon, double delta);

/// Makes the certificate of a finished run. ledger: everything that was charged to the privacy
/// budget. If the run lost its random key and repeated steps, the ledger has more charges than were
/// planned. released: single noisy values that were released, such as the number of examples. step:
/// number of steps done.
privacy::Certificate make_certificate(const Experiment& experiment, const TrainingSize& size,
                                      const Method& method, const privacy::Ledger& ledger,
                                      const std::vector<privacy::NoisyValue>& released,
                                      std::uint64_t step);

/// Makes the certificate of a run in progress; it states that the run is not finished. Its epsilon
/// is the one that the run will have if it ends at `last_step` as planned; if a privacy filter
/// stops the run when the budget is spent, its epsilon is the budget.
privacy::Certificate make_plan_certificate(const Experiment& experiment, const TrainingSize& size,
                                           const Method& method, const privacy::Ledger& ledger,
                                           const std::vector<privacy::NoisyValue>& released,
                                           std::uint64_t step, std::uint64_t last_step);

/// Makes the certificate of a run that ended with an error after the number of its training
/// examples was released with noise. That noisy number is the only thing that the run released.
privacy::Certificate make_refusal_certificate(const Experiment& experiment,
                                              const TrainingSize& size,
                                              const privacy::Ledger& ledger);

}  // namespace cudp
