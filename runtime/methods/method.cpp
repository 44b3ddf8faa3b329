#include "runtime/methods/method.hpp"

#include "runtime/methods/adaclip.hpp"
#include "runtime/methods/adp_sgd.hpp"
#include "runtime/methods/dpis.hpp"
#include "runtime/methods/dpsgd.hpp"
#include "runtime/methods/dpsgd_decay.hpp"
#include "runtime/methods/noise_spans.hpp"

namespace cudp {

std::unique_ptr<Method> make_method(const MethodFacts& f, DpisEpoch& epoch) {
  const TrainConfig& config = f.config;
  const Schedule schedule(config, f.plan, f.steps_per_epoch);
  switch (config.method) {
    case MethodKind::dpsgd:
    case MethodKind::dpsgd_ts:
    case MethodKind::dpsgd_decay:
    case MethodKind::sgd_ma:
    case MethodKind::sgd_adv:
    case MethodKind::norm_bound:
    case MethodKind::dp_agd:   // trains elsewhere: train/guarded_run.hpp
    case MethodKind::outpert:  // these too: train/linear_run.hpp
    case MethodKind::objpert:
    case MethodKind::privgene:
      break;
    case MethodKind::adp_sgd:
      return std::make_unique<AdpSgd>(config, schedule);
    case MethodKind::adaclip:
      return std::make_unique<AdaClip>(schedule);
    case MethodKind::dpis:
      return std::make_unique<Dpis>(config, schedule, f.plan, f.size, f.steps_per_epoch, f.network,
                                    f.arithmetic, epoch);
  }
  return std::make_unique<DpSgd>(schedule);
}

std::vector<NoiseSpan> noise_over_time(const TrainConfig& config, std::uint64_t steps,
                                       std::uint64_t steps_per_epoch) {
  switch (config.method) {
    case MethodKind::dpsgd:
    case MethodKind::dpsgd_ts:
    case MethodKind::adaclip:
    case MethodKind::dpis:
    case MethodKind::sgd_ma:
    case MethodKind::sgd_adv:
    case MethodKind::norm_bound:
    case MethodKind::dp_agd:
    case MethodKind::outpert:
    case MethodKind::objpert:
    case MethodKind::privgene:
      break;
    case MethodKind::dpsgd_decay:
      return noise_spans(steps, [&](std::uint64_t t) {
        return decaying_noise(config.noise_decay, t / steps_per_epoch);
      });
    case MethodKind::adp_sgd:
      return noise_spans_on_grid(
          steps, [&](std::uint64_t t) { return adp_noise(config, steps, steps_per_epoch, t); });
  }
  return {};
}

}  // namespace cudp
