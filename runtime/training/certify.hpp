#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "privacy/ledger.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Says in words what the promise is too weak for; goes to stderr too. training_size: N where it is
/// public, else the noisy one that was paid for.
std::vector<std::string> privacy_warnings(double training_size, double epsilon, double delta);

/// The certificate of a run that finished. ledger: what was really spent, which a lost key makes
/// more than was planned. released: by the gate.
privacy::Certificate make_certificate(const Experiment& experiment, const TrainingSize& size,
                                      const Method& method, const privacy::Ledger& ledger,
                                      const std::vector<privacy::NoisyValue>& released,
                                      std::uint64_t step);

/// The certificate of a run that is not finished, and says so: of what it will have spent when it
/// ends at `last_step` as planned, or of its filter's budget.
privacy::Certificate make_plan_certificate(const Experiment& experiment, const TrainingSize& size,
                                           const Method& method, const privacy::Ledger& ledger,
                                           const std::vector<privacy::NoisyValue>& released,
                                           std::uint64_t step, std::uint64_t last_step);

/// The certificate of a run that was refused once its training examples had been counted with
/// noise, which is all that it released.
privacy::Certificate make_refusal_certificate(const Experiment& experiment,
                                              const TrainingSize& size,
                                              const privacy::Ledger& ledger);

}  // namespace cudp
