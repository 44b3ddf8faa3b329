#include "runtime/run/follow.hpp"

#include <memory>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/run/authenticator.hpp"
#include "runtime/settings/settings.hpp"
#include "runtime/settings/table_defaults.hpp"
#include "runtime/training/training.hpp"

namespace cudp {
namespace {

/// Sends a random key from rank 0 to the other ranks.
void broadcast_key(Ranks& ranks, RandomKey& key) {
  ranks.broadcast("a key", std::as_writable_bytes(std::span(key.words)));
}

void broadcast_key(Ranks& ranks, std::optional<SharedKey>& key) {
  std::uint64_t there = key.has_value() ? 1 : 0;
  ranks.broadcast("whether there is a key", std::as_writable_bytes(std::span(&there, 1)));
  if (there == 0) return;
  RandomKey words = key ? key->key() : RandomKey{};
  broadcast_key(ranks, words);
  if (!key) key.emplace(words);
  wipe(words);
}

/// Sends the pre-trained weights of a resumed run, if it has any, from rank 0 to the other ranks:
/// the description of the weights' file, and the weights of frozen layers only. weights: the
/// weights to send on rank 0; on other ranks replaced by the received ones.
void broadcast_weights(Ranks& ranks, std::optional<PublicWeights>& weights) {
  std::uint64_t there = weights.has_value() ? 1 : 0;
  ranks.broadcast("whether weights are a file's", std::as_writable_bytes(std::span(&there, 1)));
  if (there == 0) return;
  if (!weights) weights.emplace();
  std::string input = to_json(weights->input).dump();
  broadcast_text(ranks, "the file of weights", input);
  weights->input = privacy::read_public_input(nlohmann::json::parse(input));
  std::uint64_t count = weights->frozen.size();
  ranks.broadcast("the number of frozen weights", std::as_writable_bytes(std::span(&count, 1)));
  weights->frozen.resize(count);
  if (count > 0)
    ranks.broadcast("frozen weights", std::as_writable_bytes(std::span(weights->frozen)));
}

/// Returns a text of everything that must be the same on all ranks (processes), one fact per line.
/// An error message shows a line that differs between ranks. Private facts are therefore replaced
/// by authentication codes under the run's key.
std::string facts_of(const Experiment& e, const RandomKey& key) {
  const Dataset& train = e.data.train;
  const Shape& s = train.shape;
  std::string vectors;
  if (train.vectors != nullptr) {
    const auto bytes = std::as_bytes(std::span(train.vectors->values));
    vectors = Authenticator(key).tag("vectors",
                                     {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  // Numbers of rows may be private, so they are sent as an authentication code.
  const std::string rows = Authenticator(key).tag(
      "rows", fmt::format("{} {}", train.whole_size(), e.data.test.whole_size()));
  return fmt::format(
      "program {}\narithmetic {}\nexamples {}x{}x{} of {} classes\nrows {}\nvectors {}\nfile of "
      "weights {}\n{}",
      program_id(), e.backend.arithmetic_name, s.channels, s.height, s.width, train.classes, rows,
      vectors, e.initial ? e.initial->input.sha256 : "none",
      write_config(e.config, Audience::owner));
}

/// Returns a text for an error message: the first line in which the facts of two ranks differ. If
/// that line is an authentication code, the text states only that the codes differ, so that the
/// message does not depend on the rows.
std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  std::size_t line = 0;
  for (; at < a.size() && at < b.size() && a[at] == b[at]; ++at)
    if (a[at] == '\n') line = at + 1;
  const auto rest = [&](const std::string& text) {
    return line < text.size() ? text.substr(line, text.find('\n', line) - line) : "nothing more";
  };
  const std::string one = rest(a);
  for (const std::string code : {"rows", "vectors"})
    if (one.starts_with(code + " "))
      return fmt::format("expected the {} of rank 0, found others", code);
  return fmt::format("expected \"{}\", found \"{}\", as rank 0 has it", one, rest(b));
}

/// Returns the keys as one text, one key per line. The function keys_of() splits it again.
std::string joined_keys(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += key + "\n";
  return text;
}
std::vector<std::string> keys_of(const std::string& text) {
  std::vector<std::string> keys;
  std::istringstream lines(text);
  for (std::string key; std::getline(lines, key);) keys.push_back(key);
  return keys;
}

/// Computes the authentication codes of this rank's data, and sends them to rank 0. Called on the
/// other ranks when rank 0 has called announce_block_tags(). training: null if it has not begun.
void answer_block_tags(const Experiment& e, Training* training, Ranks& ranks) {
  RandomKey words{};
  broadcast_key(ranks, words);
  const Authenticator authenticator{std::as_const(words)};
  wipe(words);
  (void)joined_block_tags(e, authenticator, e.data.train, training);
  if (e.split_key) (void)joined_block_tags(e, authenticator, e.data.test);
}

}  // namespace

void introduce(Ranks& ranks, const Introduction& introduction) {
  if (ranks.alone()) return;
  const MethodEntry& method = method_entry(introduction.config.method);
  if (!method.on_ranks)
    throw InputError("--ranks: expected 1 with --method " + method.name +
                     ", which trains in one go");
  announce(ranks, {.kind = RankCommand::Kind::introduce,
                   .step = introduction.config.share_device ? 1U : 0U,
                   .until = static_cast<std::uint64_t>(introduction.config.sum_by)});
  std::string config = write_config(introduction.config, Audience::owner);
  broadcast_text(ranks, "the settings", config);
  std::string open = joined_keys(introduction.config.of<LeftOpen>().keys);
  broadcast_text(ranks, "the settings that are left open", open);
  std::string model = introduction.model;
  broadcast_text(ranks, "the model", model);
  std::optional<SharedKey> key = introduction.key;
  broadcast_key(ranks, key);
  std::optional<SharedKey> split_key = introduction.split_key;
  broadcast_key(ranks, split_key);
  std::optional<PublicWeights> initial = introduction.initial;
  broadcast_weights(ranks, initial);
}

void check_same_facts(const Experiment& e, const RandomKey& key) {
  if (e.ranks->alone()) return;
  const std::vector<std::string> all = gather_text(*e.ranks, "what is trained", facts_of(e, key));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw InputError(fmt::format("rank {}: {}", r, first_difference(all[0], all[r])));
}

void send_facts(const Experiment& e, const RandomKey& key) {
  (void)gather_text(*e.ranks, "what is trained", facts_of(e, key));
}

void announce_resume(Ranks& ranks, const Checkpoint& checkpoint, bool same_key) {
  if (ranks.alone()) return;
  announce(ranks, {.kind = RankCommand::Kind::resume, .step = same_key ? 1U : 0U});
  std::string bytes = encode_checkpoint(checkpoint);
  broadcast_text(ranks, "the checkpoint", bytes);
}

void announce_block_tags(Ranks& ranks, const RandomKey& key) {
  if (ranks.alone()) return;
  announce(ranks, {.kind = RankCommand::Kind::block_tags});
  RandomKey words = key;
  broadcast_key(ranks, words);
  wipe(words);
}

std::string joined_block_tags(const Experiment& e, const Authenticator& authenticator,
                              const Dataset& part, Training* training) {
  ReadAllRows read;
  if (training != nullptr && &part == &e.data.train)
    read = [training](const RowUse& use) { return training->read_all_rows(use); };
  const std::string mine = authenticator.block_tags(part, static_cast<int>(e.config.threads), read);
  std::string all;
  for (const std::string& tags : gather_text(*e.ranks, "codes of the data", mine)) all += tags;
  return all;
}

Exit follow_run(Ranks& ranks) {
  const RankCommand first = next_command(ranks);
  if (first.kind == RankCommand::Kind::stop) return Exit::ok;
  Introduction heard;
  std::string text;
  broadcast_text(ranks, "the settings", text);
  apply_settings(parse_settings(text, "rank 0"), heard.config);
  heard.config.share_device = first.step != 0;
  heard.config.sum_by = static_cast<SumBy>(first.until);
  broadcast_text(ranks, "the settings that are left open", text);
  heard.config.of<LeftOpen>().keys = keys_of(text);
  broadcast_text(ranks, "the model", heard.model);
  std::optional<SharedKey> key;
  broadcast_key(ranks, key);
  broadcast_key(ranks, heard.split_key);
  broadcast_weights(ranks, heard.initial);
  Reporter silent(Reporter::Silent{});
  std::optional<Experiment> e(prepare(heard.config, silent, heard.model, heard.split_key, ranks,
                                      heard.initial ? &*heard.initial : nullptr));
  send_facts(*e, key->key());

  TrainingObserver nobody;
  std::unique_ptr<Training> training;
  for (;;) {
    const RankCommand command = next_command(ranks);
    switch (command.kind) {
      case RankCommand::Kind::block_tags:
        answer_block_tags(e ? *e : training->experiment(), training.get(), ranks);
        break;
      case RankCommand::Kind::begin:
        try {
          training = Training::begin(*std::exchange(e, {}), *key, nobody);
        } catch (const Error& reason) {
          // Rank 0 throws the same error. It certifies what was released, and then reports the
          // error.
          return reason.code();
        }
        break;
      case RankCommand::Kind::resume: {
        broadcast_text(ranks, "the checkpoint", text);
        training = Training::resume(*std::exchange(e, {}), *key, nobody,
                                    decode_checkpoint(text, "rank 0").training, command.step != 0);
        break;
      }
      case RankCommand::Kind::stop:
        return Exit::ok;
      default:
        training->follow(command);
    }
  }
}

}  // namespace cudp
