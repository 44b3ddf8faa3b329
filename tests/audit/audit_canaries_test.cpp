// Every method that trains by noisy sums of clipped gradients, every clipping, several networks:
// the honest training passes, and one with a tenth of the noise missing, or of which examples add
// 15 % more than they may, does not. README.md has the table.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/methods/adaclip.hpp"
#include "runtime/methods/adp_sgd.hpp"
#include "runtime/methods/dpis.hpp"
#include "runtime/methods/dpsgd_decay.hpp"
#include "tests/audit/canary_audit.hpp"

namespace cudp::audit {

void PrintTo(const CanaryCase& c, std::ostream* os) { *os << c.name; }

namespace {

const cases::Case kLogistic{"logistic", "logistic", {1, 28, 28}, 10};
const cases::Case kMlp{"mlp", "mlp", {1, 8, 8}, 10};
const cases::Case kCnn{"cnn", "cnn", {1, 28, 28}, 10};

constexpr Mutation kHonest;
constexpr Mutation kMutations[] = {{.name = "noise x 0.9", .noise = 0.9},
                                   {.name = "contribution x 1.15", .clip = 1.15},
                                   {.name = "sampling rate x 1.15", .rate = 1.15},
                                   {.name = "noise repeated", .repeats = true}};

/// Where power is measured: how little is still caught.
constexpr Mutation kSmaller[] = {{.name = "noise x 0.95", .noise = 0.95},
                                 {.name = "noise x 0.98", .noise = 0.98},
                                 {.name = "contribution x 1.1", .clip = 1.1},
                                 {.name = "contribution x 1.07", .clip = 1.07}};
constexpr int kMeasured = 20;  // trainings

/// Steps of a rate of 0.6 at noise of about what an example adds: that is much for a training, and
/// shows most.
TrainConfig config(const std::string& method) {
  TrainConfig c;
  c.method = method;
  c.sigma = 1.0;
  c.delta = 1e-5;
  c.accountant = privacy::AccountantKind::rdp;  // the fastest
  c.batch = 365;                                // of 608
  c.epochs.reset();
  c.steps = 20;
  c.clip_norm = 0.7;
  c.lr = 0.05;
  c.threads = 1;
  c.allow_weak_privacy = true;
  return c;
}

CanaryCase plain(const char* name, const cases::Case& model, Clipping clipping) {
  CanaryCase c{.name = name, .model = model, .config = config("dpsgd")};
  c.config.clipping = clipping;
  if (clipping == Clipping::per_layer) c.config.sigma = 0.5;  // a canary has one layer's part
  return c;
}

CanaryCase at_delta(const char* name, double delta) {
  CanaryCase c = plain(name, kLogistic, Clipping::flat);
  c.config.sigma.reset();
  c.config.epsilon = 25.0;
  c.config.delta = delta;
  return c;
}

std::vector<CanaryCase> all_cases() {
  std::vector<CanaryCase> all{
      plain("logistic_flat", kLogistic, Clipping::flat),
      plain("logistic_automatic", kLogistic, Clipping::automatic),
      plain("mlp_flat", kMlp, Clipping::flat),
      plain("mlp_per_layer", kMlp, Clipping::per_layer),
      plain("mlp_automatic", kMlp, Clipping::automatic),
      plain("cnn_flat", kCnn, Clipping::flat),
      plain("cnn_per_layer", kCnn, Clipping::per_layer),
      plain("cnn_automatic", kCnn, Clipping::automatic),
      at_delta("delta_1e_3", 1e-3),
      at_delta("delta_1e_5", 1e-5),
      at_delta("delta_1e_9", 1e-9),
  };
  // A canary counts as an example of the class whose weight is largest.
  all.push_back(plain("class_weights", kLogistic, Clipping::flat));
  all.back().config.class_weights = {0.1, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  all.push_back({"dpsgd_ts", kCnn, config("dpsgd-ts")});
  all.back().config.activation = "tempered-sigmoid";
  all.push_back({"dpsgd_decay", kLogistic, config("dpsgd-decay")});
  all.back().config.of<DpSgdDecayOptions>().noise_decay = 0.1;
  all.push_back({"dpsgd_quantile", kMlp, config("dpsgd-quantile")});
  all.push_back({"adp_sgd", kLogistic, config("adp-sgd")});
  all.back().config.schedule = ScheduleKind::adaptive;
  all.back().config.of<AdpSgdOptions>().noise_growth = 2.0;
  all.back().config.of<AdpSgdOptions>().adaptive_start = 1.0;
  all.back().config.sigma = 0.5;
  all.push_back({"adaclip", kMlp, config("adaclip")});
  all.back().config.of<AdaClipOptions>() = {
      .beta2 = 0.5, .min_variance = 1e-4, .max_variance = 1.0};
  all.push_back({"adaclip_cnn", kCnn, config("adaclip")});
  all.back().config.of<AdaClipOptions>() = {
      .beta2 = 0.5, .min_variance = 1e-4, .max_variance = 1.0};
  all.push_back({"dpis", kMlp, config("dpis")});
  all.push_back({"dpis_cnn", kCnn, config("dpis")});
  for (CanaryCase& c : all)
    if (c.config.method == "dpis") {
      c.config.sigma.reset();
      c.config.epsilon = 40.0;
      c.config.of<DpisOptions>().total_noise = 0.05;
    }
  return all;
}

class CanaryAudit : public testing::TestWithParam<CanaryCase> {};

TEST_P(CanaryAudit, PassesTheHonestAndCatchesTheMutated) {
  const CanaryCase& c = GetParam();
  const int runs = seeds();
  std::string row = "| " + c.name + " | " + std::to_string(runs);
  for (int s = 0; s < runs; ++s) {
    const Evidence e = audit(c, kHonest, static_cast<std::uint64_t>(s));
    EXPECT_FALSE(e.convicts()) << "seed " << s << ": noise " << e.noise << ", contribution "
                               << e.contribution << ", repeated " << e.repeated;
  }
  const auto caught = [&](const Mutation& m) {
    int n = 0;
    for (int s = 0; s < runs; ++s)
      n += audit(c, m, static_cast<std::uint64_t>(1000 + s)).convicts() ? 1 : 0;
    row += " | " + std::to_string(n);
    return n;
  };
  for (const Mutation& m : kMutations) EXPECT_GE(caught(m), runs - runs / 20) << m.name;
  if (runs >= kMeasured)
    for (const Mutation& m : kSmaller) caught(m);
  std::printf("%s |\n", row.c_str());
}

INSTANTIATE_TEST_SUITE_P(Trainings, CanaryAudit, testing::ValuesIn(all_cases()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace cudp::audit
