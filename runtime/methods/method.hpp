#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/model.hpp"
#include "runtime/config/config.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/sensitivity.hpp"
#include "runtime/methods/dpis_epoch.hpp"
#include "runtime/methods/plan.hpp"
#include "runtime/methods/schedule.hpp"

namespace cudp {

/// How a method pays for releases besides its steps, before it makes them.
struct Charging {
  /// Places begin <= i < end of the ledger, each this release (phase.steps is not read). Durable
  /// when it returns true; false: the budget does not allow it.
  std::function<bool(std::uint64_t begin, std::uint64_t end, const privacy::Phase& release)>
      authorise;
};

/// A training algorithm: what an engine is to do in a step, and what each step releases.
class Method {
 public:
  Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  virtual ~Method() = default;

  /// Before step `step`, where the steps before are done: whatever has to be measured and released
  /// first. False where the budget ends here.
  virtual bool prepare(Engine&, std::uint64_t, const Charging&) { return true; }
  /// One past the last step, from `step` on, that is known without another call of prepare.
  virtual std::uint64_t prepared_until(std::uint64_t step) const = 0;
  /// What prepared steps first <= t < last release.
  virtual std::vector<privacy::Phase> phases(std::uint64_t first, std::uint64_t last) const = 0;
  /// Where a step stands in the ledger.
  virtual std::uint64_t place(std::uint64_t step) const { return step; }

  /// Prepared steps first <= t < last.
  virtual void run(Engine& engine, std::uint64_t first, std::uint64_t last) const = 0;
};

/// A method all of whose releases are in the plan.
class PlannedMethod : public Method {
 public:
  explicit PlannedMethod(const Schedule& schedule) : schedule_(schedule) {}
  std::uint64_t prepared_until(std::uint64_t) const override { return schedule_.plan().steps; }
  std::vector<privacy::Phase> phases(std::uint64_t first, std::uint64_t last) const override {
    return step_phases(schedule_.plan(), first, last);
  }

 protected:
  const Schedule& schedule() const { return schedule_; }

 private:
  Schedule schedule_;
};

/// What a method is made from.
struct MethodFacts {
  TrainConfig config;
  PrivacyPlan plan;
  double size = 0.0;  ///< N, or the noisy one
  std::uint64_t steps_per_epoch = 1;
  Network network;
  Arithmetic arithmetic;
};

/// epoch: where the method keeps what a checkpoint must hold; outlives it.
std::unique_ptr<Method> make_method(const MethodFacts& facts, DpisEpoch& epoch);

/// The noise of every step that the config's method asks for, as PrivacyPlan::noise has it.
std::vector<NoiseSpan> noise_over_time(const TrainConfig& config, std::uint64_t steps,
                                       std::uint64_t steps_per_epoch);

}  // namespace cudp
