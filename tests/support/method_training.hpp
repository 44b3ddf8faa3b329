#pragma once
// Training of a method alone: the calls that a Training makes, for tests of the method.
#include <cstdint>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/base/random_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/privacy_budget.hpp"
#include "runtime/methods/method.hpp"
#include "tests/support/test_books.hpp"

namespace cudp::cases {

/// A started method with its data, its budget, and a gate for which everything is paid. M: class of
/// the method, or Method.
template <class M = Method>
struct MethodTraining {
  MethodTraining(std::unique_ptr<M> method_of_it, Dataset examples,
                 Backend on = choose_backend(Device::cpu), const RandomKey& key = key_from_seed(1))
      : data(std::move(examples)),
        backend(std::move(on)),
        gate(Generator::chacha20, key, all_paid()),
        inputs{.train = data, .backend = backend, .key = key, .gate = gate},
        method(std::move(method_of_it)),
        budget(ledger_for(*method), [](const privacy::Ledger&) {}) {
    method->start(inputs, budget);
  }

  /// Makes the steps from `first` to `last`, which the budget must allow.
  void run(std::uint64_t first, std::uint64_t last) {
    ASSERT_EQ(method->authorise(budget, first, last), last);
    ASSERT_EQ(method->train(first, last), last);
  }

  /// Returns a ledger without releases but with the budget of the method's filter.
  static privacy::Ledger ledger_for(const M& method) {
    privacy::Ledger ledger;
    if (const auto limit = method.filter()) ledger.limit(*limit);
    return ledger;
  }

  Dataset data;
  Backend backend;
  Gate gate;
  TrainingInputs inputs;
  std::unique_ptr<M> method;
  PrivacyBudget budget;
};

}  // namespace cudp::cases
