// Bounds that processes share are those of the accountant itself, and are found by all arguments
// only.
#include "tests/support/shared_bounds.hpp"

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privacy/accountant.hpp"
#include "runtime/sweep/trainings.hpp"

namespace cudp {
namespace {

using privacy::Accountant;
using privacy::AccountantKind;
using privacy::AccountantOptions;
using privacy::Composition;
using privacy::PrivacyBound;

struct Asked {
  Composition composition;
  AccountantOptions options;
  double delta;
};

std::vector<Asked> asked() {
  const Composition poisson{
      .releases = {{privacy::PoissonGaussian{.q = 0.013, .sigma = 1.37}, 211}}};
  const Composition allocated{
      .releases = {{privacy::AllocatedGaussian{.steps = 7, .sigma = 1.9}, 3}}};
  AccountantOptions coarse{.kind = AccountantKind::pld};
  coarse.coarseness = 100.0;
  return {{poisson, coarse, 1e-5},
          {allocated, coarse, 1e-5},
          {poisson, {.kind = AccountantKind::rdp}, 1e-5},
          {poisson, {.kind = AccountantKind::rdp, .orders = {2.0, 5.0}}, 1e-5}};
}

bool is_same(const PrivacyBound& a, const PrivacyBound& b) {
  return a.epsilon == b.epsilon && a.delta == b.delta && a.epsilon_lower == b.epsilon_lower &&
         a.epsilon_add == b.epsilon_add && a.epsilon_remove == b.epsilon_remove &&
         a.interval == b.interval && a.accountant == b.accountant && a.order == b.order &&
         a.group == b.group;
}

/// Passes everything on to another store, and counts.
class Counting final : public privacy::BoundStore {
 public:
  explicit Counting(privacy::BoundStore& store) : store_(store) {}
  std::optional<PrivacyBound> find(const std::string& question) const override {
    const auto found = store_.find(question);
    ++(found ? hits : misses);
    return found;
  }
  void add(const std::string& question, const PrivacyBound& bound) override {
    store_.add(question, bound);
  }
  mutable int hits = 0, misses = 0;

 private:
  privacy::BoundStore& store_;
};

/// Returns whether f() is true in a process of its own.
bool holds_in_a_process(const std::function<bool()>& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SharedBounds, AreThoseOfTheAccountant) {
  SharedBounds shared;
  for (const bool is_first : {true, false}) {
    EXPECT_TRUE(holds_in_a_process([&] {
      Counting store(shared);
      privacy::use_bound_store(&store);
      bool same = true;
      for (const Asked& a : asked()) {
        const PrivacyBound found = Accountant(a.composition, a.options).epsilon(a.delta);
        privacy::use_bound_store(nullptr);
        // Another thread has no cache yet: its accountant computes.
        std::thread([&] {
          same = same && is_same(found, Accountant(a.composition, a.options).epsilon(a.delta));
        }).join();
        privacy::use_bound_store(&store);
      }
      return same &&
             (is_first ? store.hits == 0 && store.misses > 0 : store.hits > 0 && store.misses == 0);
    })) << is_first;
  }
}

/// Every argument is part of the question, also in its last bit.
TEST(SharedBounds, AreOfOneQuestion) {
  EXPECT_TRUE(holds_in_a_process([] {
    class Recording final : public privacy::BoundStore {
     public:
      std::optional<PrivacyBound> find(const std::string& question) const override {
        questions.insert(question);
        return PrivacyBound{.epsilon = 1.0};
      }
      void add(const std::string&, const PrivacyBound&) override {}
      mutable std::set<std::string> questions;
    };
    Recording store;
    privacy::use_bound_store(&store);
    bool is_new = true;
    const auto ask = [&](const Composition& c, const AccountantOptions& o, double delta) {
      const std::size_t before = store.questions.size();
      (void)Accountant(c, o).epsilon(delta);
      is_new = is_new && store.questions.size() > before;
    };
    for (const Asked& a : asked()) {
      const auto& [composition, options, delta] = a;
      ask(composition, options, delta);
      ask(composition, options, std::nextafter(delta, 1.0));
      Composition c = composition;
      c.group = 2;
      ask(c, options, delta);
      c = composition;
      c.relation = privacy::NeighbouringRelation::replace_one;
      if (std::holds_alternative<privacy::PoissonGaussian>(c.releases[0].mechanism))
        ask(c, options, delta);
      c = composition;
      c.releases[0].count += 1;
      ask(c, options, delta);
      c = composition;
      std::visit(
          [](auto& m) {
            if constexpr (requires { m.sigma; }) m.sigma = std::nextafter(m.sigma, 9.0);
          },
          c.releases[0].mechanism);
      ask(c, options, delta);
      AccountantOptions o = options;
      o.orders.push_back(std::nextafter(3.0, 4.0));
      if (options.kind == AccountantKind::rdp) {
        ask(composition, o, delta);
        continue;
      }
      o = options;
      o.interval = 0.01;
      ask(composition, o, delta);
      o = options;
      o.coarseness = 99.0;
      ask(composition, o, delta);
      o = options;
      o.max_distinct_releases += 1;
      ask(composition, o, delta);
    }
    return is_new;
  }));
}

/// A process finds what another one has added, in whichever order they were forked.
TEST(SharedBounds, AreKnownToAllProcesses) {
  SharedBounds shared;
  EXPECT_TRUE(holds_in_a_process([&] {
    shared.add("first", {.epsilon = 1.0});
    return !shared.find("second").has_value();
  }));
  ASSERT_TRUE(shared.find("first").has_value());
  EXPECT_EQ(shared.find("first")->epsilon, 1.0);
  shared.add("second", {.epsilon = 2.0});
  EXPECT_TRUE(holds_in_a_process([&] {
    return shared.find("first")->epsilon == 1.0 && shared.find("second")->epsilon == 2.0;
  }));
}

/// Trainings of a sweep share them, unless others are in use already.
TEST(SharedBounds, AreInUseWhileASweepIs) {
  EXPECT_TRUE(holds_in_a_process([] {
    privacy::use_bound_store(nullptr);
    {
      const SharedData data;
      privacy::BoundStore* const used = privacy::used_bound_store();
      if (used == nullptr) return false;
      const SharedData more;
      if (privacy::used_bound_store() != used) return false;
    }
    if (privacy::used_bound_store() != nullptr) return false;
    SharedBounds others;
    privacy::use_bound_store(&others);
    { const SharedData data; }
    return privacy::used_bound_store() == &others;
  }));
}

/// What does not fit into the memory is left out.
TEST(SharedBounds, FillTheirMemoryAndNoMore) {
  SharedBounds shared;
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 70; ++i)
    shared.add(large + std::to_string(i), {.epsilon = static_cast<double>(i)});
  int found = 0;
  for (int i = 0; i < 70; ++i)
    if (const auto bound = shared.find(large + std::to_string(i))) {
      EXPECT_EQ(bound->epsilon, i);
      ++found;
    }
  EXPECT_GE(found, 60);
  EXPECT_LT(found, 64);
  EXPECT_FALSE(shared.find(large).has_value());
}

}  // namespace
}  // namespace cudp
