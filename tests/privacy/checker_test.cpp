#include "privacy/verify/checker.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/accountant.hpp"
#include "privacy/ledger.hpp"
#include "tests/support/fake_run.hpp"
#include "tests/support/reference/random.hpp"

namespace cudp {
namespace {

using fake_run::Fake;
using fake_run::Json;
using transcript::Batch;
using transcript::Begin;
using transcript::Release;
using transcript::State;
using transcript::Update;
using verify::Verdict;

std::string text_of(const Verdict& v) {
  std::string all;
  for (const verify::Finding& f : v.findings) all += f.rule + ": " + f.what + "\n";
  return all;
}

TEST(Checker, PassesHonestRuns) {
  for (const OptimizerKind kind :
       {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov, OptimizerKind::adam,
        OptimizerKind::adamw})
    for (const bool with_settings : {false, true}) {
      Fake run;
      run.optimizer.kind = kind;
      run.ema = with_settings ? 0.4 : 0.0;
      run.with_settings = with_settings;
      run.generator = with_settings ? Generator::philox : Generator::chacha20;
      const Verdict v = run.make().verdict();
      EXPECT_TRUE(v.findings.empty()) << text_of(v);
      EXPECT_EQ(v.releases, run.steps);
      EXPECT_EQ(v.numbers, run.steps * run.d);
      EXPECT_EQ(v.updates, run.steps);
      EXPECT_EQ(v.skipped.empty(), with_settings);
    }
}

Fake quantile() {
  Fake run;
  run.method = "dpsgd-quantile";
  return run;
}

TEST(Checker, PassesHonestRunsOfOtherMethods) {
  for (const bool with_settings : {false, true})
    for (const bool normalised : {false, true}) {
      Fake run = quantile();
      run.with_settings = with_settings;
      run.normalised = normalised;
      const Verdict v = run.make().verdict();
      EXPECT_TRUE(v.findings.empty()) << text_of(v);
      EXPECT_EQ(v.releases, 2 * run.steps);
    }
  Fake sized;
  sized.private_size = true;
  Verdict v = sized.make().verdict();
  EXPECT_TRUE(v.findings.empty()) << text_of(v);

  Fake adaptive;
  adaptive.method = "adp-sgd";
  adaptive.adaptive = adaptive.with_settings = true;
  v = adaptive.make().verdict();
  EXPECT_TRUE(v.findings.empty()) << text_of(v);
}

/// A run that was killed at step 5 of 8, with a checkpoint of step 3.
Fake killed(Fake run, bool fresh, const std::function<void(Fake&)>& resume) {
  run.steps = 8;
  run.start();
  run.train(0, 3);
  const Fake checkpoint = run;
  run.ledger.authorise(3, 7, run.mechanism());
  run.step(3);
  run.step(4);
  run.state = checkpoint.state;
  run.clip_now = checkpoint.clip_now;
  run.b2 = checkpoint.b2;
  run.listed = checkpoint.listed;
  if (fresh) {
    run.key = key_from_seed(77);
  } else {
    run.gradients = checkpoint.gradients;
  }
  resume(run);
  run.begin(3);
  run.records.emplace_back(run.state);
  run.train(3, 8);
  run.certify();
  return run;
}

TEST(Checker, PassesRunsThatWereKilled) {
  for (Fake run : {Fake{}, quantile()}) {
    run.ema = 0.9;
    Verdict v = killed(run, false, [](Fake&) {}).verdict();
    EXPECT_TRUE(v.findings.empty()) << text_of(v);
    v = killed(run, true, [](Fake& r) { r.ledger.fresh_key(3); }).verdict();
    EXPECT_TRUE(v.findings.empty()) << text_of(v);
  }
}

// What was tampered with is found, by its rule.

struct Fault {
  const char* name;
  const char* rule;
  std::function<void(Fake&)> change;  ///< of an honest run
};

void expect_found(const char* name, const char* rule, const Fake& run) {
  const Verdict v = run.verdict();
  EXPECT_TRUE(std::ranges::count(v.findings, rule, &verify::Finding::rule) > 0)
      << name << ": expected a finding of " << rule << ", found\n"
      << text_of(v);
}

/// A release made again with this much noise, from a stream's step.
void redraw(Fake& run, std::size_t i, double factor, std::uint64_t from_step) {
  Release& r = run.get<Release>(i);
  const auto k = rounded_normals(run.stream(static_cast<Stream>(r.stream), from_step),
                                 r.noise_std * factor / r.grid, 0, r.sums.size());
  for (std::size_t j = 0; j < k.size(); ++j)
    r.values[j] =
        static_cast<double>(static_cast<float>(r.grid * static_cast<double>(r.sums[j] + k[j])));
}

TEST(Checker, FindsWhatWasTamperedWith) {
  const std::vector<Fault> faults = {
      {"noise x 0.9, as it is stated", "noise", [](Fake& r) { redraw(r, 2, 0.9, 2); }},
      {"noise x 0.9, recorded", "noise",
       [](Fake& r) {
         r.get<Release>(2).noise_std *= 0.9;
         redraw(r, 2, 1.0, 2);
       }},
      {"noise x 1.1, recorded", "noise",
       [](Fake& r) {
         r.get<Release>(2).noise_std *= 1.1;
         redraw(r, 2, 1.0, 2);
       }},
      {"no noise", "noise",
       [](Fake& r) {
         Release& release = r.get<Release>(4);
         for (std::size_t j = 0; j < release.sums.size(); ++j)
           release.values[j] = release.grid * static_cast<double>(release.sums[j]);
       }},
      {"the noise of the step before", "noise", [](Fake& r) { redraw(r, 3, 1.0, 2); }},
      {"one number of the last bit", "noise",
       [](Fake& r) {
         double& x = r.get<Release>(1).values[33];
         x = static_cast<double>(std::nextafterf(static_cast<float>(x), 10.0f));
       }},
      {"a coarser grid", "noise", [](Fake& r) { r.get<Release>(0).grid *= 2.0; }},
      {"another key", "noise", [](Fake& r) { r.get<Begin>(0).key[7] ^= 1; }},
      {"another generator", "noise", [](Fake& r) { r.get<Begin>(0).generator = "philox"; }},
      {"noise of one place for two sums", "twice",
       [](Fake& r) {
         Release& release = r.get<Release>(3);
         release.step = 2;
         redraw(r, 3, 1.0, 2);
       }},
      {"a gradient that is too long", "sensitivity",
       [](Fake& r) {
         for (std::int64_t& s : r.get<Release>(2).sums) s *= 10;
         redraw(r, 2, 1.0, 2);
       }},
      {"one example more", "batch",
       [](Fake& r) {
         std::vector<std::uint32_t>& e = r.get<Batch>(1).examples;
         for (std::uint32_t i = 0; i < 150; ++i)
           if (!std::ranges::binary_search(e, i)) {
             e.insert(std::ranges::lower_bound(e, i), i);
             return;
           }
       }},
      {"one example less", "batch", [](Fake& r) { r.get<Batch>(1).examples.pop_back(); }},
      {"rate x 1.1, drawn", "batch",
       [](Fake& r) {
         Batch& b = r.get<Batch>(1);
         b.threshold = b.threshold * 11 / 10;
         const RandomStream stream = r.stream(Stream::sampling, 1);
         b.examples.clear();
         for (std::uint32_t i = 0; i < 150; ++i)
           if (reference::is_drawn(stream, i, b.threshold)) b.examples.push_back(i);
       }},
      {"no batch", "batch", [](Fake& r) { r.drop<Batch>(2); }},
      {"another number of examples", "batch", [](Fake& r) { r.get<Begin>(0).examples = 151; }},
      {"divided by the batch that was drawn", "divisor",
       [](Fake& r) { r.get<Update>(2).inverse_batch = 1.0 / 19.0; }},
      {"not in the ledger", "charged", [](Fake& r) { r.get<Release>(4).charged = 4; }},
      {"a step that the ledger never had", "charged",
       [](Fake& r) {
         r.ledger = {};
         r.ledger.authorise(0, 5, r.mechanism());
       }},
      {"a certificate of fewer steps", "ledger",
       [](Fake& r) { r.certificate["releases"][0]["steps"] = 5; }},
      {"a certificate of more noise", "ledger",
       [](Fake& r) { r.certificate["releases"][0]["sigma"] = 1.2; }},
      {"a release dropped", "update", [](Fake& r) { r.drop<Release>(3); }},
      {"a step dropped", "kinds",
       [](Fake& r) {
         r.drop<Batch>(5);
         r.drop<Release>(5);
         r.drop<Update>(5);
       }},
      {"a count that is none of the method's", "kinds",
       [](Fake& r) { r.release("count", Stream::clipped_count, 0, 0x1p-20, 2.0, 0.5, {4}); }},
      {"listed, and never released", "kinds",
       [](Fake& r) {
         r.certificate["noisy_values"] = Json::array({{{"what", "x"},
                                                       {"times", 1},
                                                       {"numbers", 3},
                                                       {"sensitivity", 1.0},
                                                       {"noise_std", 2.0},
                                                       {"grid", 0x1p-20}}});
       }},
      {"a parameter that does not follow", "update",
       [](Fake& r) { r.get<Update>(2).parameters[69] *= 1.0f + 0x1p-18f; }},
      {"a moment that does not follow", "update",
       [](Fake& r) { r.get<Update>(2).moment1[0] *= 1.0f + 0x1p-18f; }},
      {"an average that does not follow", "update",
       [](Fake& r) { r.get<Update>(2).average[5] *= 1.0f + 0x1p-18f; }},
      {"an average of sums without noise", "update",
       [](Fake& r) { r.get<Update>(3).average = r.get<Update>(2).average; }},
      {"another weight of the average", "update",
       [](Fake& r) { r.get<Update>(5).ema_decay *= 0.99; }},
      {"an average that begins elsewhere", "update",
       [](Fake& r) { r.get<State>(0).average[5] = 0.0f; }},
      {"a moment that begins elsewhere", "update",
       [](Fake& r) { r.get<State>(0).moment1[5] = 1.0f; }},
      {"goes back to a key that was lost", "twice",
       [](Fake& r) {
         r.key = key_from_seed(8);
         r.begin(6);
         r.key = key_from_seed(3);
         r.begin(6);
       }},
      {"no update", "update", [](Fake& r) { r.drop<Update>(2); }},
      {"epsilon x 0.99", "epsilon",
       [](Fake& r) { r.certificate["epsilon"] = r.certificate["epsilon"].get<double>() * 0.99; }},
      {"half of delta, of the same epsilon", "epsilon",
       [](Fake& r) { r.certificate["delta"] = 0.5e-5; }},
      {"q x 1.1 in the certificate", "batch",
       [](Fake& r) { r.certificate["q"] = r.certificate["q"].get<double>() * 1.1; }},
      {"sensitivity x 0.9 in the certificate", "noise",
       [](Fake& r) {
         r.certificate["sensitivity"] = r.certificate["sensitivity"].get<double>() * 0.9;
       }},
      {"a method that is not known", "kinds", [](Fake& r) { r.certificate["method"] = "mine"; }}};
  EXPECT_GE(faults.size(), 30u);
  Fake honest;
  honest.ema = 0.3;
  honest.make();
  ASSERT_TRUE(honest.verdict().findings.empty()) << text_of(honest.verdict());
  for (const Fault& fault : faults) {
    Fake run = honest;
    fault.change(run);
    expect_found(fault.name, fault.rule, run);
  }
}

TEST(Checker, FindsARateThatIsNotTheOneOfAPrivateSize) {
  Fake run;
  run.private_size = true;
  run.make();
  Fake other = run;
  other.certificate["size_release"]["noisy_size"] = 137;
  expect_found("another size", "noise", other);
  // A rate x 1.1 throughout: sampled, charged and stated, of the same batch and size.
  Fake scaled;
  scaled.private_size = true;
  scaled.start();
  scaled.size /= 1.1;
  scaled.train(0, scaled.steps);
  scaled.size *= 1.1;
  scaled.certify();
  const double q = std::get<privacy::PoissonGaussian>(scaled.ledger.releases()[1].mechanism).q;
  scaled.certificate["q"] = q;
  scaled.certificate["sampling_threshold"] = static_cast<std::uint64_t>(q * 0x1p32);
  scaled.certificate["releases"][1]["q"] = q;
  expect_found("rate x 1.1", "batch", scaled);
}

TEST(Checker, FindsWhatQuantileDoesNotRelease) {
  Fake run = quantile();
  run.make();
  ASSERT_TRUE(run.verdict().findings.empty()) << text_of(run.verdict());
  Fake counts = run;
  // The third release of a step's pair is a count: with its own noise, but less.
  Release& count = counts.get<Release>(3);
  count.noise_std *= 0.9;
  const auto k =
      rounded_normals(counts.stream(Stream::clipped_count, 1), count.noise_std / count.grid, 0, 1);
  count.values[0] = count.grid * static_cast<double>(count.sums[0] + k[0]);
  expect_found("count's noise x 0.9", "noise", counts);
  expect_found("count's noise x 0.9", "kinds", counts);

  Fake joint = run;
  joint.certificate["quantile"]["count_noise_std"] = 0.9 * run.count_noise;
  expect_found("joint sigma", "noise", joint);

  // The clipping norm of a step follows another count than the one that was released.
  for (const bool with_settings : {false, true}) {
    Fake follows = quantile();
    follows.with_settings = with_settings;
    follows.start();
    follows.ledger.authorise(0, follows.steps, follows.mechanism());
    for (std::uint64_t t = 0; t < follows.steps; ++t) {
      follows.step(t);
      if (t == 3) follows.clip_now *= 1.01;
    }
    follows.certify();
    expect_found("clipping norm", "noise", follows);
  }
  Fake dropped = run;
  dropped.drop<Release>(11);
  expect_found("a count dropped", "kinds", dropped);
}

TEST(Checker, FindsRepeatedStepsThatWereNotCharged) {
  for (const Fake& run : {Fake{}, quantile()}) {
    // A key of its own, with what the lost one was charged.
    expect_found("never charged again", "charged", killed(run, true, [](Fake&) {}));
    // Charged only from where the ledger ended.
    Fake late = killed(run, true, [](Fake& r) { r.ledger.fresh_key(3); });
    late.ledger = {};
    late.ledger.authorise(0, 7, late.mechanism());
    late.ledger.fresh_key(7);
    late.ledger.authorise(7, 12, late.mechanism());
    late.certify();
    expect_found("charged as other steps", "charged", late);
    // The same key, other sums.
    Fake twice = killed(run, false, [](Fake& r) { r.gradients.seed(9); });
    expect_found("other sums", "twice", twice);
    // Goes on from numbers that no update left.
    Fake moved = killed(run, false, [](Fake& r) { r.state.parameters[3] += 1.0f; });
    expect_found("other parameters", "update", moved);
  }
}

TEST(Checker, HoldsSettings) {
  Fake run;
  run.with_settings = true;
  run.ema = 0.4;
  run.optimizer.kind = OptimizerKind::adam;
  run.make();
  ASSERT_TRUE(run.verdict().findings.empty()) << text_of(run.verdict());
  const std::pair<const char*, const char*> changes[] = {
      {"lr = 0.5", "lr = 0.6"},          {"seed = 3", "seed = 4"},
      {"ema = 0.4", "ema = 0.2"},        {"\"adam\"", "\"adamw\""},
      {"beta2 = 0.999", "beta2 = 0.99"}, {"weight-decay = 0.01", "weight-decay = 0.02"},
      {"warmup = 0", "warmup = 3"},      {"\"constant\"", "\"cosine\""},
      {"batch = 20", "batch = 21"}};
  for (const auto& [from, to] : changes) {
    Fake other = run;
    other.settings.replace(other.settings.find(from), std::string(from).size(), to);
    if (std::string(to).find("cosine") != std::string::npos) other.settings += "final-lr = 0.0\n";
    EXPECT_FALSE(other.verdict().findings.empty()) << to;
  }

  // Adaptive steps that see the gradient before its noise.
  Fake adaptive;
  adaptive.method = "adp-sgd";
  adaptive.adaptive = adaptive.with_settings = true;
  adaptive.make();
  for (std::uint64_t t = 2; t < 6; ++t) adaptive.get<Update>(t).learning_rate *= 1.0001;
  expect_found("adaptive steps", "update", adaptive);
}

/// A group may be in both parts of a hold-out: bounds of the training alone are too small for it.
TEST(Checker, FindsBoundsOfGroupsBesideHeldOutRows) {
  Fake run;
  run.make();
  const auto found = [&] {
    const verify::Verdict v = verify::check({.certificate = run.certificate.dump(),
                                             .ledger = run.ledger.to_text(),
                                             .transcript = run.transcript()});
    return std::ranges::count_if(v.findings, [](const verify::Finding& f) {
      return f.what.find("certificate's groups") != std::string::npos;
    });
  };
  const auto table = nlohmann::json::parse(R"([{"examples": 2, "epsilon": 3.0}])");
  run.certificate["groups"] = table;
  EXPECT_EQ(found(), 0);
  run.certificate["holdout"] = {{"share", 0.2}};
  run.certificate["training_epsilon"] = run.certificate["epsilon"];
  run.certificate["training_delta"] = run.certificate["delta"];
  EXPECT_EQ(found(), 1);
  run.certificate["groups"] = "not stated";
  EXPECT_EQ(found(), 0);
}

TEST(Checker, RefusesWhatCannotBeRead) {
  Fake run;
  run.make();
  verify::Evidence e{.certificate = run.certificate.dump(),
                     .ledger = run.ledger.to_text(),
                     .transcript = run.transcript()};
  ASSERT_TRUE(verify::check(e).findings.empty());
  verify::Evidence other = e;
  other.certificate = "{";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other.certificate = "{}";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other = e;
  other.ledger[30] ^= 1;
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other.ledger = "";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other = e;
  other.transcript = "x" + e.transcript;
  EXPECT_THROW(verify::check(other), std::invalid_argument);
  other = e;
  other.settings = "lr\n";
  EXPECT_THROW(verify::check(other), std::invalid_argument);
}

}  // namespace
}  // namespace cudp