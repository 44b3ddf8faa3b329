#include "tests/support/forger.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJsonFiles[] = {"privacy.json", "holdout.json"};

struct Change {
  std::string how;
  std::optional<Json> value;  ///< empty: the field is removed
};

std::vector<Change> of_whole(std::int64_t n) {
  return {{"up", n + 1},
          {"down", n - 1},
          {"sign", -n},
          {"zero", 0},
          {"huge", 1LL << 62},
          {"doubled", 2 * n},
          {"half", n / 2},
          {"text", "a text"},
          {"null", nullptr},
          {"removed", {}},
          {"real", static_cast<double>(n) + 0.5}};
}

std::vector<Change> of_real(double x) {
  return {{"up", x == 0.0 ? 0.1 : 1.1 * x},
          {"down", x == 0.0 ? -0.1 : 0.9 * x},
          {"little up", x == 0.0 ? 1e-3 : 1.001 * x},
          {"little down", x == 0.0 ? -1e-3 : 0.999 * x},
          {"sign", -x},
          {"zero", 0.0},
          {"huge", 1e300},
          {"tiny", 1e-300},
          {"doubled", 2.0 * x},
          {"half", 0.5 * x},
          {"text", "a text"},
          {"null", nullptr},
          {"removed", {}}};
}

std::vector<Change> of_text(const std::string& text, const std::set<std::string>& others) {
  std::vector<Change> all = {{"another text", text + " indeed"},
                             {"no text", ""},
                             {"number", 1},
                             {"null", nullptr},
                             {"removed", {}}};
  for (const std::string& other : others)
    if (other != text) {
      all.push_back({"swapped", other});
      break;
    }
  return all;
}

std::vector<Change> of_list(const Json& list) {
  std::vector<Change> all = {{"removed", {}}, {"emptied", Json::array()}, {"text", "a text"}};
  if (!list.empty()) {
    Json doubled = list;
    doubled.push_back(list.back());
    all.push_back({"last doubled", doubled});
    doubled = list;
    doubled.insert(doubled.begin(), list.front());
    all.push_back({"first doubled", doubled});
  } else {
    all.push_back({"something added", Json::array({"a text"})});
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    Json cut = list;
    cut.erase(i);
    all.push_back({"cut", cut});
    if (i > 0) {
      Json swapped = list;
      std::swap(swapped[i - 1], swapped[i]);
      all.push_back({"neighbours swapped", swapped});
    }
  }
  return all;
}

std::vector<Change> changes_of(const Json& value, const std::set<std::string>& texts) {
  std::vector<Change> all;
  if (value.is_number_integer() || value.is_number_unsigned())
    all = of_whole(value.get<std::int64_t>());
  else if (value.is_number())
    all = of_real(value.get<double>());
  else if (value.is_string())
    all = of_text(value.get<std::string>(), texts);
  else if (value.is_boolean())
    all = {{"flipped", !value.get<bool>()}, {"removed", {}}, {"text", "a text"}};
  else if (value.is_array())
    all = of_list(value);
  else if (value.is_object())
    all = {{"removed", {}}, {"emptied", Json::object()}, {"text", "a text"}};
  else
    all = {{"removed", {}}, {"number", 0.1}};
  std::erase_if(all, [&](const Change& c) { return c.value && *c.value == value; });
  return all;
}

/// Calls change(field, how, changed whole) for every change of a field of `whole` at or below `at`.
class Walk {
 public:
  using Visit = std::function<void(const std::string& field, const std::string& how, const Json&)>;
  Walk(Json whole, std::string file, const TextsOfFields& texts, Visit visit)
      : whole_(std::move(whole)), file_(std::move(file)), texts_(texts), visit_(std::move(visit)) {}

  void run() { below(whole_, ""); }

 private:
  const std::set<std::string>& texts_of(const std::string& field) const {
    static const std::set<std::string> none;
    const auto found = texts_.find(file_ + " " + field);
    return found == texts_.end() ? none : found->second;
  }

  void below(Json& node, const std::string& field) {
    const auto join = [&](const std::string& key) {
      return field.empty() ? key : field + "/" + key;
    };
    if (node.is_object()) {
      std::vector<std::string> keys;
      for (const auto& [key, value] : node.items()) keys.push_back(key);
      for (const std::string& key : keys) change(node, key, join(key));
      node["one_more"] = 1.0;
      visit_(join("one_more"), "added", whole_);
      node.erase("one_more");
      for (const std::string& key : keys) below(node[key], join(key));
    } else if (node.is_array()) {
      for (Json& element : node) {
        if (element.is_primitive()) {
          const Json before = element;
          for (const Change& c : changes_of(before, texts_of(join("*")))) {
            if (!c.value) continue;  // "cut" of the list
            element = *c.value;
            visit_(join("*"), c.how, whole_);
          }
          element = before;
        } else {
          below(element, join("*"));
        }
      }
    }
  }

  void change(Json& object, const std::string& key, const std::string& field) {
    const Json before = object;
    for (const Change& c : changes_of(before[key], texts_of(field))) {
      if (c.value)
        object[key] = *c.value;
      else
        object.erase(key);
      visit_(field, c.how, whole_);
      object = before;
    }
  }

  Json whole_;
  std::string file_;
  const TextsOfFields& texts_;
  Visit visit_;
};

void collect(const Json& node, const std::string& field, TextsOfFields& texts) {
  if (node.is_string()) texts[field].insert(node.get<std::string>());
  const std::string before = field.ends_with(' ') ? field : field + "/";
  if (node.is_object())
    for (const auto& [key, value] : node.items()) collect(value, before + key, texts);
  if (node.is_array())
    for (const Json& element : node) collect(element, field + "/*", texts);
}

std::vector<std::string> lines_with_ends(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    lines.push_back(text.substr(at, end + 1 - at));
    at = end + 1;
  }
  return lines;
}
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

class Forger {
 public:
  Forger(const fs::path& release, const TextsOfFields& texts) : release_(release), texts_(texts) {}

  std::vector<Forgery> all() {
    for (const char* const file : kJsonFiles)
      if (fs::exists(release_ / file)) json_file(file);
    metrics();
    pages();
    settings();
    files();
    return std::move(all_);
  }

 private:
  void add(std::string file, std::string field, std::string how,
           std::optional<std::string> content) {
    all_.push_back({std::move(file), std::move(field), std::move(how), std::move(content)});
  }
  std::string content(const char* file) const { return content_of(release_ / file); }

  void json_file(const std::string& file) {
    const std::string text = content(file.c_str());
    Walk(Json::parse(text), file, texts_, [&](const auto& field, const auto& how, const Json& j) {
      add(file, field, how, j.dump(2) + "\n");
    }).run();
    if (file == "privacy.json") older_formats(text);
    // A key that stands there twice: readers take one of them.
    for (const char* const doubled :
         {"\"epsilon\": 0.01", "\"delta\": 1e-30", "\"status\": \"finished\""}) {
      std::string twice = text;
      twice.insert(twice.find('{') + 1, std::string(doubled) + ",");
      add(file, "", "key doubled", twice);
    }
  }

  /// Relabels the certificate as one of the older format, whole or without one of its fields, and
  /// empties all lists.
  void older_formats(const std::string& text) {
    const std::string file = "privacy.json";
    Json older = Json::parse(text);
    Json emptied = older;
    for (auto& value : emptied)
      if (value.is_array()) value = Json::array();
    add(file, "", "lists emptied", emptied.dump(2) + "\n");
    older["format"] = "cudp privacy certificate 1";
    add(file, "format", "older", older.dump(2) + "\n");
    std::vector<std::string> keys;
    for (const auto& [key, value] : older.items()) keys.push_back(key);
    for (const std::string& key : keys) {
      Json less = older;
      less.erase(key);
      if (key == "releases") less[key] = Json::array();
      add(file, key, "older format, removed", less.dump(2) + "\n");
    }
  }

  void metrics() {
    const std::string file = "metrics.jsonl";
    if (!fs::exists(release_ / file)) return;
    const std::vector<std::string> rows = lines_with_ends(content(file.c_str()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Walk(Json::parse(rows[i]), file, texts_,
           [&](const auto& field, const auto& how, const Json& j) {
             std::vector<std::string> changed = rows;
             changed[i] = j.dump() + "\n";
             add(file, field, how, joined(changed));
           })
          .run();
      std::vector<std::string> changed = rows;
      changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
      add(file, "", "row cut", joined(changed));
      changed = rows;
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), rows[i]);
      add(file, "", "row doubled", joined(changed));
      changed = rows;
      if (i > 0) {
        std::swap(changed[i - 1], changed[i]);
        add(file, "", "rows swapped", joined(changed));
      }
    }
  }

  void pages() {
    for (const char* const file : {"report.html", "PRIVACY.txt", "README.md"}) {
      if (!fs::exists(release_ / file)) continue;
      const std::string text = content(file);
      std::string changed = text;
      const std::size_t number = changed.find_first_of("0123456789", changed.find("Epsilon "));
      changed[number] = changed[number] == '1' ? '2' : '1';
      add(file, "", "epsilon changed", changed);
      add(file, "", "line added", text + "\n");
      add(file, "", "cut", text.substr(0, text.size() - 1));
      if (text.starts_with("---\n"))
        add(file, "front matter", "line added", "---\nlicense: mit\n" + text.substr(4));
    }
  }

  /// Changes the lines of config.toml, with the kinds of changes that a JSON file has.
  void settings() {
    const std::string file = "config.toml";
    const std::vector<std::string> lines = lines_with_ends(content(file.c_str()));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::size_t equals = lines[i].find(" = ");
      if (lines[i].starts_with('#') || equals == std::string::npos) continue;
      const std::string key = lines[i].substr(0, equals);
      const Json value = Json::parse(lines[i].substr(equals + 3), nullptr, false);
      if (value.is_discarded()) continue;
      for (const Change& c : changes_of(value, {})) {
        if (c.value && c.value->is_null()) continue;  // TOML has none
        std::vector<std::string> changed = lines;
        if (c.value)
          changed[i] = key + " = " + c.value->dump() + "\n";
        else
          changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
        add(file, key, c.how, joined(changed));
      }
      std::vector<std::string> changed = lines;
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
      add(file, key, "key doubled", joined(changed));
    }
    // Settings that speak against a release, or for it, in a run that lacks them.
    for (const char* const line :
         {"seed = 3", "size-is-public = true", "holdout = 0.25", "sigma = 9.0"})
      add(file, line, "added", std::string(line) + "\n" + joined(lines));
  }

  void files() {
    for (const auto& entry : fs::directory_iterator(release_))
      add(entry.path().filename().string(), "", "file removed", std::nullopt);
    const std::pair<const char*, const char*> more[] = {
        {"holdout.json",
         "{\"share\": 0.5, \"epsilon\": 1.0, \"delta\": 1e-6, \"noise_std\": 1e-9}\n"},
        {"evaluation.json", "{\"test_accuracy\": 0.75}\n"},
        {"schema.toml", "name = \"rows\"\n"},
        {"vocabulary.txt", "word\n"},
        {"NOT-FOR-RELEASE.txt", "Not for release.\n"},
        {"NO-PRIVACY.txt", "No privacy.\n"},
        {"roc.png", "picture"},
        {"diagnostics.jsonl", "{}\n"},
        {"rows.csv", "x,y\n1,2\n"},
        {".hidden", "x\n"}};
    for (const auto& [name, text] : more)
      if (!fs::exists(release_ / name)) add(name, "", "file added", text);
  }

  fs::path release_;
  const TextsOfFields& texts_;
  std::vector<Forgery> all_;
};

}  // namespace

void collect_texts(const fs::path& release, TextsOfFields& texts) {
  for (const std::string file : kJsonFiles)
    if (fs::exists(release / file))
      collect(Json::parse(content_of(release / file)), file + " ", texts);
}

std::vector<Forgery> forgeries_of(const fs::path& release, const TextsOfFields& texts) {
  return Forger(release, texts).all();
}

}  // namespace cudp
