// Hold-outs over crashes and fresh keys: no row moves from one part to the other, and figures are
// made of one noise once.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/files.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/run/authenticator.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/key_file.hpp"
#include "tests/support/holdout_runs.hpp"
#include "tests/support/replayed_run.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

using HoldoutResume = HoldoutRuns;

TEST_F(HoldoutResume, MoveNoRowUnderAFreshKey) {
  train_and_kill();
  const std::vector<std::uint32_t> before = split_key();
  ASSERT_EQ(before.size(), 8u);
  EXPECT_NE(before, std::vector<std::uint32_t>(8, 0));
  CudpProcess process(folder_, {"train", "--resume", folder_ / "run", "--fresh-noise", "--quiet"});
  // Its first checkpoint under the new key follows the message.
  const auto is_renewed = [&] {
    return content_of(folder_ / "run/private/log.txt").find("with a new key") != std::string::npos;
  };
  EXPECT_TRUE(wait_until(is_renewed));
  const auto then = newest_checkpoint_file(folder_ / "run");
  EXPECT_TRUE(wait_until([&] { return newest_checkpoint_file(folder_ / "run") != then; }));
  process.signal(SIGKILL);
  process.wait();
  EXPECT_EQ(split_key(), before);
}

/// An earlier version computes other codes of the same rows.
TEST_F(HoldoutResume, OfAnEarlierVersionAreRefusedAsSuch) {
  train_and_kill();
  const fs::path private_folder = folder_ / "run/private";
  auto stored = newest_checkpoint(private_folder, [](const std::string&) {});
  ASSERT_TRUE(stored.has_value());
  const auto key = read_key(private_folder / "key");
  ASSERT_TRUE(key.has_value());
  stored->checkpoint.data[0] = stored->checkpoint.data[0] == 'a' ? 'b' : 'a';
  stored->checkpoint.training.step += 1;
  const auto refused = [&](const char* words) {
    const Finished f = resume({"--fresh-noise"});
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_NE(f.err.find(words), std::string::npos) << f.err;
  };
  save_checkpoint(private_folder, stored->checkpoint, Authenticator(key->key()));
  refused("found other data or another schema; --fresh-noise does not allow it");
  constexpr std::string_view kThis = "cudp checkpoint 10\n";
  std::string bytes = encode_checkpoint(stored->checkpoint);
  bytes.replace(0, kThis.size(), "cudp checkpoint 9\n");
  bytes.resize(bytes.size() - sizeof(std::uint64_t));
  const std::uint64_t sum = checksum(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  write_authenticated(newest_checkpoint_file(folder_ / "run"), "checkpoint", bytes,
                      Authenticator(key->key()), Sync::no);
  refused(
      "found a run of an earlier version, which computes other codes of rows, and which alone can "
      "continue the run (cudp train --resume); otherwise begin another run: cudp train --out DIR");
}

TEST_F(HoldoutResume, AreRefusedWhereTheirCoinsAreLost) {
  train_and_kill();
  const fs::path private_folder = folder_ / "run/private";
  auto stored = newest_checkpoint(private_folder, [](const std::string&) {});
  ASSERT_TRUE(stored.has_value());
  // A checkpoint without them.
  const auto key = read_key(private_folder / "key");
  ASSERT_TRUE(key.has_value());
  stored->checkpoint.training.split_key.reset();
  stored->checkpoint.training.step += 1;
  save_checkpoint(private_folder, stored->checkpoint, Authenticator(key->key()));
  for (const Arguments& more : std::vector<Arguments>{{}, {"--fresh-noise"}}) {
    const Finished f = resume(more);
    EXPECT_EQ(f.exit, 3) << f.err;
    EXPECT_NE(f.err.find("the key that decided which rows were held out"), std::string::npos)
        << f.err;
  }
  // No checkpoint at all.
  remove_checkpoints(private_folder);
  EXPECT_EQ(resume().exit, 3);
}

TEST_F(HoldoutResume, FiguresArePaidForOnce) {
  train_and_kill();
  write_text(folder_ / "run/private/holdout-released", "0\n");
  const Finished f = resume({"--fresh-noise"});
  EXPECT_EQ(f.exit, 3) << f.err;
  EXPECT_NE(f.err.find("which their budget pays for once"), std::string::npos) << f.err;
}

/// Held out, by the key of the newest checkpoint, of rows that are units.
std::vector<bool> held_out(const std::vector<std::uint32_t>& split_key, std::size_t rows) {
  RandomKey key{};
  std::ranges::copy(split_key, std::begin(key.words));
  std::vector<bool> held;
  for (const std::uint32_t word :
       random_words({Generator::chacha20, key, Stream::sampling, 0}, rows))
    held.push_back(word * 0x1p-32 < 0.25);
  return held;
}

void write_lines(const fs::path& file, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  write_text(file, text);
}

/// The same noise on other figures would tell their difference; and whoever was trained on must not
/// be held out later, under a fresh key either.
TEST_F(HoldoutResume, GoOnWithTheSameRowsInTheSamePartsOnly) {
  train_and_kill("stays.csv");
  const fs::path table = folder_ / "stays.csv";
  const std::vector<std::string> before = lines_of(content_of(table));
  const std::vector<bool> held = held_out(split_key(), before.size() - 1);
  // Lines, the header being one, of two held-out rows and one that was trained on.
  const auto first = std::ranges::find(held, true);
  const auto one = static_cast<std::size_t>(first - held.begin()) + 1;
  const auto two =
      static_cast<std::size_t>(std::find(first + 1, held.end(), true) - held.begin()) + 1;
  const auto trained = static_cast<std::size_t>(std::ranges::find(held, false) - held.begin()) + 1;
  ASSERT_LT(two, before.size());
  std::vector<std::vector<std::string>> others(6, before);
  std::string& target = others[0][one];  // of a held-out row alone
  target.replace(target.rfind(',') + 1, std::string::npos, target.ends_with(",1") ? "2" : "1");
  others[1].erase(others[1].begin() + static_cast<std::ptrdiff_t>(before.size()) - 1);
  for (std::size_t i = before.size() - 1; i > 0 && others[2].size() == before.size(); --i)
    if (held[i - 1]) others[2].erase(others[2].begin() + static_cast<std::ptrdiff_t>(i));
  std::swap(others[3][one], others[3][two]);
  std::swap(others[4][one], others[4][trained]);  // changes its part
  others[5].insert(others[5].begin() + 1, others[5][one]);
  ASSERT_NE(before[one], before[two]);
  ASSERT_NE(before[one], before[trained]);
  for (std::size_t i = 0; i < others.size(); ++i)
    for (const Arguments& more : std::vector<Arguments>{{}, {"--fresh-noise"}}) {
      write_lines(table, others[i]);
      const Finished f = resume(more);
      EXPECT_EQ(f.exit, 2) << i << f.err;
      EXPECT_NE(f.err.find("held-out rows too, found other data"), std::string::npos) << f.err;
    }
  // Another key for all that is lost does not help.
  fs::remove(folder_ / "run/private/key");
  EXPECT_EQ(resume().exit, 2);
  // Other shares and budgets are other experiments.
  write_lines(table, before);
  for (const Arguments& more :
       std::vector<Arguments>{{"--holdout", "0.3"},
                              {"--holdout", "0.25", "--holdout-epsilon", "1.5"},
                              {"--holdout", "0.25", "--holdout-delta", "1e-5"}}) {
    const Finished f = resume(with(more, {"--fresh-noise"}));
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_NE(f.err.find("as in the run being resumed"), std::string::npos) << f.err;
  }
}

/// Ends the process once noise of held-out figures was drawn.
class KilledAtFigures : public ReleaseObserver {
 public:
  void on_release(const ReleasedValue& what, std::span<std::byte>) override {
    if (what.purpose == Stream::holdout_figures) ::raise(SIGKILL);
  }
};

TEST_F(HoldoutResume, FiguresOfOtherRowsAreNotMadeUnderTheNoiseThatWasDrawn) {
  const Arguments run = words("stays.csv", with(kHoldoutBudget, {"--steps", "5", "--seed", "3"}));
  // By the same program throughout, which alone goes on under the same key.
  const auto go_on = [&](const Arguments& more = {}) {
    return run_observed(folder_.path(), with({"train", "--resume", folder_ / "run"}, more),
                        [] { return nullptr; });
  };
  const Ended killed = run_observed(folder_.path(), run, [] { return new KilledAtFigures; });
  ASSERT_EQ(killed.exit, -SIGKILL) << killed.err;
  ASSERT_TRUE(fs::exists(folder_ / "run/private/holdout-released"));
  const fs::path table = folder_ / "stays.csv";
  const std::vector<std::string> before = lines_of(content_of(table));
  const std::vector<bool> held = held_out(split_key(), before.size() - 1);
  std::vector<std::string> other = before;
  for (std::size_t i = 1; i < other.size(); ++i)
    if (held[i - 1]) other[i].replace(other[i].rfind(',') + 1, std::string::npos, "40");
  write_lines(table, other);
  const Ended refused = go_on();
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("held-out rows too, found other data"), std::string::npos)
      << refused.err;
  EXPECT_EQ(go_on({"--fresh-noise"}).exit, 3);
  EXPECT_FALSE(fs::exists(folder_ / "run/release/holdout.json"));
  write_lines(table, before);
  EXPECT_EQ(go_on({"--fresh-noise"}).exit, 3);
  EXPECT_EQ(go_on().exit, 0);
  EXPECT_TRUE(fs::exists(folder_ / "run/release/holdout.json"));
}

/// Figures that are computed again may differ, if an evaluation differs in a last bit: the first
/// ones are kept before they leave, and only they do.
TEST_F(HoldoutResume, FiguresOnceComputedAreTheOnlyOnesThatLeave) {
  const fs::path kept = folder_ / "run/private/holdout-figures";
  const fs::path released = folder_ / "run/release/holdout.json";
  const auto go_on = [&] {
    return run_observed(folder_.path(), {"train", "--resume", folder_ / "run"},
                        [] { return nullptr; });
  };
  const Ended killed = run_observed(
      folder_.path(), words("stays.csv", with(kHoldoutBudget, {"--steps", "5", "--seed", "3"})),
      [] { return new KilledAtFigures; });
  ASSERT_EQ(killed.exit, -SIGKILL) << killed.err;
  EXPECT_FALSE(fs::exists(kept));
  const fs::path obstacle = folder_ / "run/release/.holdout.json.new";
  fs::create_directory(obstacle);  // the figures cannot leave
  EXPECT_NE(go_on().exit, 0);
  EXPECT_FALSE(fs::exists(released));
  ASSERT_TRUE(fs::exists(kept));
  fs::remove(obstacle);

  // What another evaluation would have computed.
  const auto key = read_key(folder_ / "run/private/key");
  ASSERT_TRUE(key.has_value());
  const std::string own = content_of(kept.string());
  auto figures = nlohmann::json::parse(read_authenticated(kept).content);
  figures["noisy"][0] = "0x1.8p+9";
  write_authenticated(kept, "figures of held-out rows", figures.dump(), Authenticator(key->key()));
  const std::string first = content_of(kept.string());

  fs::remove(kept);
  write_text(released.string(), "{}\n");  // they have left, and are lost
  EXPECT_EQ(go_on().exit, 3);
  EXPECT_EQ(content_of(released.string()), "{}\n");
  std::string forged = own;
  forged[forged.find("0x") + 4] ^= 1;
  write_text(kept.string(), forged);
  EXPECT_EQ(go_on().exit, 2);
  EXPECT_EQ(content_of(released.string()), "{}\n");

  write_text(kept.string(), first);
  const Ended finished = go_on();
  ASSERT_EQ(finished.exit, 0) << finished.err;
  EXPECT_EQ(json("release/holdout.json")["sums_over_width"]["rows"], 768.0);
  EXPECT_FALSE(fs::exists(kept)) << "the run is complete";
}

}  // namespace
}  // namespace cudp
