#pragma once
// What is audited: the pair of data sets that is worst for clipping and noise.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/methods/engine_method.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/test_books.hpp"

namespace cudp::audit {

inline constexpr int kFeatures = 7;

/// A linear model with the hinge loss: where |w| is small an example's gradient is -y (x, 1),
/// whatever w is. `others` examples with one feature of size `size` each, never the first. The
/// example in question has the first feature alone, so large that its clipped gradient is about -C
/// along that coordinate, where all others' gradients vanish.
struct WorstPair {
  Network network = cases::network_of({"svm", "svm", {kFeatures, 1, 1}, 2});
  Dataset with;
  Dataset without;

  WorstPair(int others, float size) {
    without.shape = {kFeatures, 1, 1};
    without.classes = 2;
    for (int i = 0; i < others; ++i) {
      for (int j = 0; j < kFeatures; ++j)
        without.floats.push_back(j == 1 + i % (kFeatures - 1) ? size : 0.0f);
      without.labels.push_back(1);
    }
    with = without;
    for (int j = 0; j < kFeatures; ++j) with.floats.push_back(j == 0 ? 1000.0f : 0.0f);
    with.labels.push_back(1);
  }
};

/// The same of texts: a text is one word, three times, whose public vector has the example's
/// features.
inline WorstPair as_texts(WorstPair pair) {
  constexpr int kWords = 3;
  const int words = static_cast<int>(pair.with.size());
  const auto vectors = std::make_shared<const WordVectors>(
      WordVectors{.rows = words, .columns = kFeatures, .values = pair.with.floats});
  for (Dataset* d : {&pair.with, &pair.without}) {
    d->shape = {1, 1, kWords};
    d->floats.clear();
    d->words = words;
    d->vectors = vectors;
    for (std::size_t i = 0; i < d->size(); ++i)
      d->tokens.insert(d->tokens.end(), kWords, static_cast<std::uint16_t>(i));
    d->lengths.assign(d->size(), kWords);
  }
  static constexpr const char* kModel =
      "name = 'texts'\nloss = 'hinge'\nlayers = [{type='embedding',name='e'},{type='mean'},"
      "{type='dense',name='linear',out='outputs'}]";
  pair.network = cases::network_of({"texts", kModel, {1, 1, kWords}, 2, {words, kFeatures}});
  return pair;
}

/// A config for the pair's data sets, and the plan that `cudp train` would have.
struct Audited {
  TrainConfig config;
  WorstPair pair;
  TrainingSize size;
  Backend backend = choose_backend(Device::cpu);
  PrivacyPlan plan;

  Audited(const TrainConfig& c, WorstPair audited) : config(c), pair(std::move(audited)) {
    config.threads = 1;
    size.value = static_cast<double>(pair.without.size());
    plan = cases::plan_of(config, pair.network, size, backend.arithmetic(pair.network));
  }

  MethodContext context() const {
    return cases::context_of(config, pair.network, size, backend.arithmetic(pair.network));
  }
};

/// Of a run: no two have the same.
inline RandomKey key_of(bool with, std::uint64_t run) {
  return key_from_seed(2 * run + (with ? 1 : 0));
}

/// A method on one of the pair's data sets, from weights of 0, under the filter that it asks for.
/// M: made of a context and a plan.
template <class M>
class AuditedRun {
 public:
  /// plan: the one that the method goes by; that of `a` in the product.
  AuditedRun(const Audited& a, const Backend& backend, const PrivacyPlan& plan, bool with,
             std::uint64_t run)
      : key_(key_of(with, run)),
        gate_(Generator::chacha20, key_, all_paid()),
        inputs_{with ? a.pair.with : a.pair.without, backend, key_, gate_},
        method_(a.context(), plan),
        budget_(ledger_for(method_), [](const privacy::Ledger&) {}) {
    method_.start(inputs_, budget_);
    change([](MethodState& state) { std::ranges::fill(array(state, "parameters"), 0.0f); });
  }

  M& method() { return method_; }
  PrivacyBudget& budget() { return budget_; }

  /// Goes on from another state than the method's own.
  template <class Edit>
  void change(const Edit& edit) {
    MethodState state = method_.state();
    edit(state);
    method_.restore(inputs_, state);
  }

 private:
  static privacy::Ledger ledger_for(const M& method) {
    privacy::Ledger ledger;
    if (const auto limit = method.filter()) ledger.limit(*limit);
    return ledger;
  }
  static std::vector<float>& array(MethodState& state, const std::string& name) {
    return std::ranges::find(state.arrays, name, [](const auto& a) { return a.first; })->second;
  }

  SharedKey key_;  // one, because each locks a page of memory
  Gate gate_;
  TrainingInputs inputs_;
  M method_;
  PrivacyBudget budget_;
};

}  // namespace cudp::audit
