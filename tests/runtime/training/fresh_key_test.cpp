// Trainings that go on under a key of their own, on other rows: nothing of the earlier rows is left
// but what was released, and one row more or less moves no other.
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/gate/release_observer.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/training/training.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

constexpr int kRows = 90;

/// Patients' visits, up to three rows each; those of one seed begin alike, however many there are.
void write_visits(const std::filesystem::path& folder, const std::string& name, int rows,
                  unsigned seed) {
  std::mt19937_64 random(seed);
  std::string text = "who,age,hours,ill\n";
  for (int i = 0; i < rows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += "p" + std::to_string(i / 3) + "," + std::to_string(age) + "," + std::to_string(hours) +
            (age + hours + random() % 20 > 80 ? ",yes\n" : ",no\n");
  }
  write_text(folder / (name + ".csv"), text);
}

std::string schema(bool units) {
  return std::string("name = \"visits\"\n") + (units ? "unit = \"who\"\nmax_rows = 3\n" : "") +
         R"(columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)";
}

/// A method, and what else a training of it is set to.
struct Way {
  std::string name;
  std::string method;
  std::string more;  ///< TOML
  bool units = false;
  bool allocated = false;  ///< examples are allocated to the steps of an epoch
};
void PrintTo(const Way& s, std::ostream* os) { *os << s.name; }

/// Keeps the states that checkpoints are made of.
struct States : TrainingObserver {
  std::vector<TrainingState> all;
  void checkpoint_due(const Training& t) override { all.push_back(t.state()); }
};

/// Writes down who is drawn and what leaves; or puts what another wrote down in its place.
class Watcher final : public SecretObserver {
 public:
  explicit Watcher(const TrainConfig& config, const Watcher* earlier = nullptr)
      : SecretObserver(SeededKey(config)), earlier_(earlier) {
    begin(SeededKey(config), {}, [] { return std::uint64_t{0}; });
  }

  void on_record(const transcript::Record& record) override {
    if (const auto* const batch = std::get_if<transcript::Batch>(&record)) drawn.push_back(*batch);
  }
  void before_noise(const ReleasedValue&, std::span<const std::int64_t>) override {}
  void before_noise(const ReleasedValue&, std::span<const double>) override {}
  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    const std::size_t at = left.size();
    left.emplace_back(RecordingObserver::describe(what, values.size()),
                      std::vector<std::byte>(values.begin(), values.end()));
    if (earlier_ == nullptr || at >= earlier_->left.size()) return;
    const auto& [public_part, recorded] = earlier_->left[at];
    if (public_part != left[at].first || recorded.size() != values.size()) return;
    std::ranges::copy(recorded, values.begin());
  }

  std::vector<transcript::Batch> drawn;
  std::vector<std::pair<std::string, std::vector<std::byte>>> left;

 private:
  void on_begin(const transcript::Begin&, std::function<std::uint64_t()>) override {}

  const Watcher* earlier_;
};

class FreshKeyOf : public testing::TestWithParam<Way> {
 protected:
  FreshKeyOf() {
    write_text(folder_ / "visits.toml", schema(GetParam().units));
    write_visits(folder_.path(), "first", kRows, 5);
    write_visits(folder_.path(), "others", kRows, 6);
    write_visits(folder_.path(), "one_fewer", kRows - 1, 6);
    write_visits(folder_.path(), "one_more", kRows + 1, 6);
  }

  Experiment experiment(const std::string& table) const {
    const Way& s = GetParam();
    std::vector<std::string> notes;
    const MethodEntry& method = method_entry(s.method);
    std::string text = "dataset = \"" + (folder_ / (table + ".csv")) + "\"\nschema = \"" +
                       (folder_ / "visits.toml") + "\"\nmethod = \"" + s.method +
                       "\"\nmodel = \"logistic\"\nepsilon = 20.0\ndelta = 1e-5\nseed = 1\n"
                       "threads = 1\ndevice = \"cpu\"\neval-every = 0\ncheckpoint-every = 3\n";
    if (method.stochastic)
      text +=
          std::string("batch = 15\nema = 0.0\n") + (s.allocated ? "epochs = 2\n" : "steps = 14\n");
    // Most of such a short training would be the accountant's work; two have one of their own.
    if (s.allocated)
      text += "sampling = \"allocation\"\n";
    else if (method.stochastic && s.method != "sgd-ma" && s.method != "sgd-adv")
      text += "accountant = \"rdp\"\n";
    const TrainConfig config = resolve_config(parse_settings(text + s.more, "the test"), notes);
    Reporter silent(Reporter::Silent{});
    Experiment e = prepare(config, silent);
    if (e.data.size_is_public) e.public_size = kRows;
    return e;
  }

  /// The states of a training from its beginning: in an epoch's middle, and at its end.
  std::vector<TrainingState> states(const std::string& table,
                                    ReleaseObserver* release_observer = nullptr) const {
    States seen;
    const auto t = Training::begin(experiment(table), key_from_seed(1), seen, release_observer);
    t->advance();
    std::erase_if(seen.all, [](const TrainingState& s) { return s.step == 0; });
    if (seen.all.size() > 2) seen.all.erase(seen.all.begin() + 2, seen.all.end());
    return std::move(seen.all);
  }

  /// What a training comes to that goes on from a state under another key.
  struct End {
    std::vector<float> parameters;
    std::string ledger;
    std::vector<privacy::NoisyValue> listed;
    std::uint64_t steps = 0;
    bool operator==(const End&) const = default;
  };
  End end_of(const std::string& table, const TrainingState& state,
             ReleaseObserver* release_observer = nullptr) const {
    TrainingObserver nobody;
    const auto t = Training::resume(experiment(table), key_from_seed(2), nobody, state, false,
                                    release_observer);
    t->charge_again();
    t->advance();
    return {t->method().parameters(), t->ledger().to_text(), t->state().released, t->step()};
  }

  TemporaryFolder folder_;
};

bool has_arrays_by_example(const TrainingState& state) {
  return std::ranges::any_of(state.method.arrays,
                             [](const auto& array) { return is_per_example(array.first); });
}

/// The state with other numbers in place of those that follow from rows and were not released.
TrainingState altered(TrainingState state) {
  for (auto& [name, array] : state.method.arrays)
    if (is_per_example(name))
      for (std::size_t i = 0; i < array.size(); ++i) array[i] = i % 2 == 0 ? 0.001f : 7.0f;
  return state;
}

/// With the values that were released on some rows, a training on one row less or more has the same
/// state, but for the arrays by example.
TEST_P(FreshKeyOf, AStateFollowsFromReleasesButForArraysByExample) {
  const TrainConfig config = experiment("others").config;
  Watcher all(config);
  const std::vector<TrainingState> want = states("others", &all);
  ASSERT_FALSE(want.empty());
  for (const char* const table : {"one_fewer", "one_more"}) {
    SCOPED_TRACE(table);
    Watcher other(config, &all);
    const std::vector<TrainingState> got = states(table, &other);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const MethodState a = released_part(got[i].method);
      const MethodState b = released_part(want[i].method);
      EXPECT_EQ(a.numbers.dump(), b.numbers.dump());
      EXPECT_TRUE(a.arrays == b.arrays);
      EXPECT_EQ(got[i].ledger.to_text(), want[i].ledger.to_text());
      EXPECT_TRUE(got[i].feature_release == want[i].feature_release);
    }
  }
}

/// Arrays by example show in nothing: a training that goes on with them, with none or with others
/// ends alike, whatever the rows.
TEST_P(FreshKeyOf, GoesOnFromWhatWasReleasedAlone) {
  for (const TrainingState& state : states("first")) {
    if (!has_arrays_by_example(state)) continue;
    TrainingState bare = state;
    bare.method = released_part(bare.method);
    for (const char* const table : {"first", "others", "one_fewer", "one_more"}) {
      SCOPED_TRACE(std::string(table) + " from step " + std::to_string(state.step));
      const End want = end_of(table, bare);
      EXPECT_TRUE(end_of(table, state) == want);
      EXPECT_TRUE(end_of(table, altered(state)) == want);
      EXPECT_GT(want.steps, state.step);
    }
  }
}

/// With the values that were released on some rows, one row less or more draws the same of all
/// others, and releases the same of public properties.
TEST_P(FreshKeyOf, OneRowMovesNoOther) {
  const TrainConfig config = experiment("others").config;
  for (const TrainingState& state : states("first")) {
    Watcher all(config);
    const End want = end_of("others", state, &all);
    for (const auto& [table, last] : {std::pair{"one_fewer", kRows - 1}, {"one_more", kRows}}) {
      SCOPED_TRACE(std::string(table) + " from step " + std::to_string(state.step));
      Watcher other(config, &all);
      const End got = end_of(table, state, &other);
      EXPECT_TRUE(got == want);
      ASSERT_EQ(other.left.size(), all.left.size());
      for (std::size_t i = 0; i < all.left.size(); ++i)
        EXPECT_EQ(other.left[i].first, all.left[i].first);
      ASSERT_EQ(other.drawn.size(), all.drawn.size());
      for (std::size_t i = 0; i < all.drawn.size(); ++i) {
        const auto others = [last = static_cast<std::uint32_t>(last)](transcript::Batch batch) {
          std::erase(batch.examples, last);
          return batch.examples;
        };
        EXPECT_EQ(others(other.drawn[i]), others(all.drawn[i])) << "step " << all.drawn[i].step;
      }
    }
  }
}

/// Methods that train in one go, or without privacy, take no other key.
bool takes_a_fresh_key(const MethodEntry& m) {
  return m.gives_privacy && !(m.linear_model && m.cpu_only);
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const MethodEntry& m : methods()) {
    if (!takes_a_fresh_key(m)) continue;
    std::string name = m.name;
    std::ranges::replace(name, '-', '_');
    const bool spans = m.name == "dpsgd-decay" || m.name == "adp-sgd";
    const std::string own = spans                ? "fresh-noise-allowed = true\n"
                            : m.name == "dp-agd" ? "splits = 6\n"
                                                 : "";
    all.push_back({name, m.name, own});
    // Advanced composition is for public numbers of single rows. Of units the totals of dpis, at
    // 0.02 of the number of rows, take most of the budget.
    if (m.name == "sgd-adv")
      all.back().more = "size-is-public = true\n";
    else if (m.units_unsupported.empty())
      all.push_back({name + "_units", m.name,
                     own + (m.name == "dpis" ? "dpis-total-noise = 0.2\n" : ""), true});
  }
  // A second key pays for its epoch again, so the noise must leave something of the budget.
  const std::string spare = "size-is-public = true\nsigma = 4.0\n";
  all.push_back({"dpsgd_allocation", "dpsgd", spare, false, true});
  all.push_back({"dpsgd_quantile_allocation", "dpsgd-quantile", spare, false, true});
  const std::string pca = "features = \"pca\"\nfeature-dimensions = 1\n";
  all.push_back({"dpsgd_pca", "dpsgd", pca});
  all.push_back({"dpis_pca", "dpis", pca});
  all.push_back({"dpis_adaptive_clip", "dpis", "dpis-adaptive-clip = true\n"});
  all.push_back({"dpis_of_public_size", "dpis", "size-is-public = true\n"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(EveryMethod, FreshKeyOf, testing::ValuesIn(ways()),
                         [](const auto& info) { return info.param.name; });

TEST(FreshKey, IsTakenByEveryMethodThatMakesSteps) {
  for (const MethodEntry& m : methods())
    EXPECT_EQ(takes_a_fresh_key(m),
              std::ranges::any_of(ways(), [&](const Way& w) { return w.method == m.name; }))
        << m.name;
}

}  // namespace
}  // namespace cudp
