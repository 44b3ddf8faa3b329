#include "runtime/run/checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "privacy/mechanism/mechanism_text.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/number_text.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// First bytes of a checkpoint file. kMagic is for this version of the format; kEarlierMagic is for
/// the one before, whose layout is the same (Checkpoint::is_earlier); kAnyMagic, the start of both,
/// is the same in all versions.
constexpr std::string_view kMagic = "cudp checkpoint 10\n";
constexpr std::string_view kEarlierMagic = "cudp checkpoint 9\n";
constexpr std::string_view kAnyMagic = "cudp checkpoint ";
/// Start of the name of a checkpoint's file. The number of the step follows.
constexpr std::string_view kPrefix = "checkpoint-";
/// Number of checkpoints that are kept; older ones are removed.
constexpr std::size_t kKept = 2;
/// Purpose (argument of Authenticator::tag) of the authentication code of a checkpoint, so that a
/// file of another kind cannot pass for a checkpoint.
constexpr std::string_view kPurpose = "checkpoint";

/// Name under which a checkpoint stores the released noisy statistics for features.
constexpr const char* kFeatureRelease = "feature_release";
/// Names under which a checkpoint stores the weights of frozen layers (kFrozen), and a description
/// of the file from which they were read.
constexpr const char* kFrozen = "frozen";
constexpr const char* kInitial = "initial_weights";
/// Name under which a checkpoint stores Checkpoint::boot; not stored if it is "".
constexpr const char* kBoot = "boot";

void append_number(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint64_t take_number(std::string_view& bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return number;
}

using UsedCharges = std::vector<PrivacyBudget::UsedCharge>;

Json encoded(const UsedCharges& all) {
  Json list = Json::array();
  for (const PrivacyBudget::UsedCharge& t : all)
    list.push_back({privacy::exact_text(t.mechanism), t.parts, t.count});
  return list;
}
void decode(const Json& list, UsedCharges& all) {
  for (const Json& t : list) {
    const auto text = t.at(0).get<std::string>();
    std::string_view rest = text;
    all.push_back({.mechanism = privacy::take_mechanism(rest),
                   .parts = t.at(1).get<std::uint64_t>(),
                   .count = t.at(2).get<std::uint64_t>()});
  }
}

Json encoded(const std::vector<privacy::NoisyValue>& all) {
  Json list = Json::array();
  for (const privacy::NoisyValue& l : all)
    list.push_back({l.name, l.times, l.numbers, l.grid, l.noise_std, l.sensitivity});
  return list;
}
void decode(const Json& list, std::vector<privacy::NoisyValue>& all) {
  for (const Json& l : list)
    all.push_back({.name = l.at(0).get<std::string>(),
                   .times = l.at(1).get<std::uint64_t>(),
                   .numbers = l.at(2).get<std::uint64_t>(),
                   .grid = l.at(3).get<double>(),
                   .noise_std = l.at(4).get<double>(),
                   .sensitivity = l.at(5).get<double>()});
}

Json encoded(const privacy::Ledger& ledger) { return ledger.to_text(); }
void decode(const Json& text, privacy::Ledger& ledger) {
  ledger = privacy::Ledger::from_text(text.get<std::string>(), "its ledger");
}

Json encoded(const std::vector<MetricsRow>& rows) { return encode_metrics(rows); }
void decode(const Json& text, std::vector<MetricsRow>& rows) {
  rows = decode_metrics(text.get<std::string>());
}

Json encoded(const std::optional<SharedKey>& split_key) {
  Json words = Json::array();
  if (split_key)
    for (const std::uint32_t w : split_key->key().words) words.push_back(w);
  return words;
}
void decode(const Json& words, std::optional<SharedKey>& split_key) {
  if (words.empty()) return;
  RandomKey key{};
  for (std::size_t i = 0; i < std::size(key.words); ++i)
    key.words[i] = words.at(i).get<std::uint32_t>();
  split_key.emplace(key);
}

template <class T>
Json encoded(const T& plain) {
  return plain;
}
template <class T>
void decode(const Json& json, T& plain) {
  plain = json.get<T>();
}

/// Calls visit(name, member) for each part of a checkpoint that is not an array.
template <class C, class Visit>
void visit_parts(C& c, const Visit& visit) {
  visit("step", c.training.step);
  visit("parameters", c.parameters);
  visit("training_size", c.training.size.value);
  visit("size_noise", c.training.size.noise);
  visit("unit_rows", c.training.size.unit_rows);
  visit("unit", c.unit);
  visit("coins", c.training.split_key);
  visit("arithmetic", c.arithmetic);
  visit("program", c.program);
  visit("data", c.data);
  visit("seconds", c.training.seconds);
  visit("key_check", c.key_check);
  visit("ledger", c.training.ledger);
  visit("ledger_was_lost", c.ledger_was_lost);
  visit("taken", c.training.used_charges);
  visit("released", c.training.released);
  visit("metrics", c.training.metrics);
  visit("config", c.config);
  visit("model", c.model);
  visit("method", c.training.method.numbers);
}

/// Returns the step in a checkpoint's name; nullopt for other files.
std::optional<std::uint64_t> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return read_number<std::uint64_t>(name.substr(kPrefix.size()));
}

/// Returns the checkpoints of a folder, newest first.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<std::uint64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto step = step_of(entry.path())) found.emplace_back(*step, entry.path());
  std::ranges::sort(found, std::greater<>());
  std::vector<fs::path> paths;
  paths.reserve(found.size());
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

// Layout of the file: magic, length of the JSON header, header, float arrays, and a checksum of
// everything before it.
std::string encode_checkpoint(const Checkpoint& c) {
  auto arrays = c.training.method.arrays;
  arrays.emplace_back(kFeatureRelease, c.training.feature_release);
  const std::optional<PublicWeights>& initial = c.training.initial;
  if (initial) arrays.emplace_back(kFrozen, initial->frozen);
  Json header;
  if (initial) header[kInitial] = {to_json(initial->input), c.training.first_parameters};
  if (!c.boot.empty()) header[kBoot] = c.boot;
  visit_parts(c, [&](const char* name, const auto& part) { header[name] = encoded(part); });
  header["arrays"] = Json::array();
  for (const auto& [name, array] : arrays) header["arrays"].push_back({name, array.size()});
  const std::string json = header.dump();

  std::string bytes(kMagic);
  append_number(bytes, json.size());
  bytes += json;
  for (const auto& [name, array] : arrays)
    bytes.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(float));
  append_number(bytes, checksum(bytes));
  return bytes;
}

Checkpoint decode_checkpoint(const std::string& file, const std::string& source) {
  const auto fail = [&](const char* what) -> void { throw Error(source + ": " + what); };
  std::string_view bytes = file;
  const bool is_earlier = bytes.starts_with(kEarlierMagic);
  const std::string_view magic = is_earlier ? kEarlierMagic : kMagic;
  if (bytes.starts_with(kAnyMagic) && !magic.starts_with(bytes.substr(0, magic.size())))
    throw InputError(source +
                     ": expected a checkpoint of this version of cudp, found one of another "
                     "version, which alone can continue the run (cudp train --resume); otherwise "
                     "begin another run: cudp train --out DIR");
  if (bytes.size() < magic.size() + 2 * sizeof(std::uint64_t) || !bytes.starts_with(magic))
    fail("damaged: not a checkpoint");
  std::string_view sum = bytes.substr(bytes.size() - sizeof(std::uint64_t));
  bytes.remove_suffix(sizeof(std::uint64_t));
  if (checksum(bytes) != take_number(sum)) fail("damaged: its checksum does not match");

  // The checksum was right, so the content is as it was written.
  bytes.remove_prefix(magic.size());
  const std::uint64_t length = take_number(bytes);
  if (length > bytes.size()) fail("damaged: it is too short");
  Checkpoint c;
  c.is_earlier = is_earlier;
  try {
    const Json header = Json::parse(bytes.substr(0, length));
    bytes.remove_prefix(length);
    visit_parts(c, [&](const char* name, auto& part) { decode(header.at(name), part); });
    if (header.contains(kBoot)) c.boot = header[kBoot].get<std::string>();
    if (header.contains(kInitial)) {
      c.training.initial =
          PublicWeights{.input = privacy::read_public_input(header[kInitial].at(0)), .frozen = {}};
      c.training.first_parameters = header[kInitial].at(1).get<std::string>();
    }
    for (const Json& entry : header.at("arrays")) {
      const auto count = entry.at(1).get<std::size_t>();
      if (count > bytes.size() / sizeof(float)) fail("damaged: it is too short");
      std::vector<float> array(count);
      const std::size_t size = count * sizeof(float);
      if (size > 0) std::memcpy(array.data(), bytes.data(), size);
      bytes.remove_prefix(size);
      const auto name = entry.at(0).get<std::string>();
      if (name == kFeatureRelease)
        c.training.feature_release = std::move(array);
      else if (name == kFrozen && c.training.initial)
        c.training.initial->frozen = std::move(array);
      else
        c.training.method.arrays.emplace_back(name, std::move(array));
    }
  } catch (const Json::exception& e) {
    fail(e.what());
  } catch (const std::invalid_argument& e) {
    fail(e.what());
  }
  return c;
}

void save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint,
                     const Authenticator& authenticator, Sync sync) {
  write_authenticated(folder / (std::string(kPrefix) + std::to_string(checkpoint.training.step)),
                      kPurpose, encode_checkpoint(checkpoint), authenticator, sync);
  const std::vector<fs::path> all = checkpoints_in(folder);
  for (std::size_t i = kKept; i < all.size(); ++i) fs::remove(all[i]);
}

bool StoredCheckpoint::is_authentic(const Authenticator& authenticator) const {
  return authenticator.matches(kPurpose, file.content, file.tag);
}

std::optional<StoredCheckpoint> newest_checkpoint(
    const fs::path& folder, const std::function<void(const std::string&)>& damaged) {
  std::optional<InputError> of_another_version;
  for (const fs::path& path : checkpoints_in(folder)) {
    try {
      AuthenticatedFile file = read_authenticated(path);
      Checkpoint checkpoint = decode_checkpoint(file.content, path.string());
      if (of_another_version) damaged(of_another_version->what());
      return StoredCheckpoint{std::move(checkpoint), std::move(file), path};
    } catch (const InputError& e) {
      if (!of_another_version) of_another_version = e;
    } catch (const Error& e) {
      damaged(e.what());
    }
  }
  if (of_another_version) throw *of_another_version;
  return std::nullopt;
}

void remove_checkpoints(const fs::path& folder) {
  for (const fs::path& path : checkpoints_in(folder)) fs::remove(path);
}

}  // namespace cudp
