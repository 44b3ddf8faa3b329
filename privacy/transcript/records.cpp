#include "privacy/transcript/records.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <nlohmann/json.hpp>

namespace cudp::transcript {
namespace {

using Json = nlohmann::ordered_json;

// Each kind of record lists its members once; writing and reading both use the list.

template <class R>
inline constexpr const char* kKind = "";
template <>
inline constexpr const char* kKind<Begin> = "begin";
template <>
inline constexpr const char* kKind<State> = "state";
template <>
inline constexpr const char* kKind<Batch> = "batch";
template <>
inline constexpr const char* kKind<Release> = "release";
template <>
inline constexpr const char* kKind<Update> = "update";

template <class R, class Visit>
void for_each_number(R& r, Visit visit) {
  using T = std::remove_const_t<R>;
  if constexpr (std::is_same_v<T, Begin>) {
    visit("generator", r.generator);
    visit("key", r.key);
    visit("examples", r.examples);
    visit("step", r.step);
  } else if constexpr (std::is_same_v<T, Batch>) {
    visit("step", r.step);
    visit("threshold", r.threshold);
    visit("epoch_steps", r.epoch_steps);
  } else if constexpr (std::is_same_v<T, Release>) {
    visit("name", r.name);
    visit("stream", r.stream);
    visit("step", r.step);
    visit("grid", r.grid);
    visit("noise_std", r.noise_std);
    visit("sensitivity", r.sensitivity);
    visit("charged", r.charged);
  } else if constexpr (std::is_same_v<T, Update>) {
    visit("step", r.step);
    visit("optimizer", r.optimizer);
    visit("momentum", r.momentum);
    visit("beta1", r.beta1);
    visit("beta2", r.beta2);
    visit("epsilon", r.epsilon);
    visit("weight_decay", r.weight_decay);
    visit("learning_rate", r.learning_rate);
    visit("inverse_batch", r.inverse_batch);
    visit("bias1", r.bias1);
    visit("bias2", r.bias2);
    visit("ema_decay", r.ema_decay);
    visit("coordinates", r.coordinates);
  }
}

template <class R, class Visit>
void for_each_array(R& r, Visit visit) {
  using T = std::remove_const_t<R>;
  if constexpr (std::is_same_v<T, Batch>) {
    visit("examples", r.examples);
  } else if constexpr (std::is_same_v<T, Release>) {
    visit("sums", r.sums);
    visit("scores", r.scores);
    visit("values", r.values);
  } else if constexpr (std::is_same_v<T, State> || std::is_same_v<T, Update>) {
    visit("parameters", r.parameters);
    visit("moment1", r.moment1);
    visit("moment2", r.moment2);
    visit("average", r.average);
  }
  if constexpr (std::is_same_v<T, Update>) visit("lr_scale", r.lr_scale);
}

/// Returns the number x as JSON; NaN and infinities, which JSON cannot represent, become texts.
Json json_of(double x) {
  if (std::isfinite(x)) return x;
  if (std::isnan(x)) return "nan";
  return x > 0.0 ? "inf" : "-inf";
}
template <class T>
Json json_of(const T& x) {
  return x;
}

void read(const Json& j, double& x) {
  if (!j.is_string()) {
    x = j.get<double>();
    return;
  }
  const auto word = j.get<std::string>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "nan")
    x = std::numeric_limits<double>::quiet_NaN();
  else
    x = word == "inf" ? kInfinity : -kInfinity;
}
template <class T>
void read(const Json& j, T& x) {
  x = j.get<T>();
}

template <class R>
std::string encode_one(const R& r) {
  Json line{{"kind", kKind<R>}};
  for_each_number(r, [&](const char* name, const auto& value) { line[name] = json_of(value); });
  std::string arrays;
  Json lengths = Json::object();
  for_each_array(r, [&](const char* name, const auto& array) {
    if (array.empty()) return;
    lengths[name] = array.size();
    arrays.append(reinterpret_cast<const char*>(array.data()),
                  array.size() * sizeof(*array.data()));
  });
  if (!lengths.empty()) line["arrays"] = std::move(lengths);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" + arrays;
}

/// Parses the record r, of type R, from a transcript: its scalars from the JSON line, its arrays
/// from the start of `rest`, from which they are removed. Returns false if the arrays are
/// truncated; r and `rest` are then not usable.
template <class R>
bool decode_one(const Json& line, std::string_view& rest, R& r) {
  for_each_number(r, [&](const char* name, auto& value) { read(line.at(name), value); });
  bool whole = true;
  for_each_array(r, [&](const char* name, auto& array) {
    if (!whole || !line.contains("arrays") || !line["arrays"].contains(name)) return;
    const auto count = line["arrays"][name].template get<std::uint64_t>();
    if (count > rest.size() / sizeof(*array.data())) {
      whole = false;
      return;
    }
    array.resize(static_cast<std::size_t>(count));
    const std::size_t bytes = array.size() * sizeof(*array.data());
    if (bytes > 0) std::memcpy(array.data(), rest.data(), bytes);
    rest.remove_prefix(bytes);
  });
  return whole;
}

}  // namespace

std::string encode(const Record& record) {
  return std::visit([](const auto& r) { return encode_one(r); }, record);
}

std::vector<Record> decode(std::string_view transcript) {
  std::vector<Record> records;
  std::string_view rest = transcript;
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("transcript, byte " +
                                std::to_string(transcript.size() - rest.size()) + ": " + what);
  };
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (rest.front() != '{') refuse("expected a record");
      break;  // truncated
    }
    const Json line = Json::parse(rest.substr(0, end), nullptr, false);
    if (!line.is_object() || !line.contains("kind"))
      refuse("expected the line of JSON that begins a record");
    std::string_view after = rest.substr(end + 1);
    Record record;
    bool whole = false;
    bool known = false;
    try {
      const auto attempt = [&]<class R>(R r) {
        if (line["kind"] != kKind<R>) return;
        known = true;
        whole = decode_one(line, after, r);
        record = std::move(r);
      };
      attempt(Begin{});
      attempt(State{});
      attempt(Batch{});
      attempt(Release{});
      attempt(Update{});
    } catch (const nlohmann::json::exception& e) {
      refuse(e.what());
    }
    if (!known) refuse("expected begin, state, batch, release or update");
    if (!whole) break;  // truncated
    const std::size_t size = rest.size() - after.size();
    if (encode(record) != rest.substr(0, size))
      refuse("expected a record in the form that encode() writes");
    records.push_back(std::move(record));
    rest = after;
  }
  return records;
}

}  // namespace cudp::transcript
