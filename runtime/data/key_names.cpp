#include "runtime/data/key_names.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/base/listed.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/schema_text.hpp"

namespace cudp {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Splits a name into words in lower case: PatientID, patient_id and "patient id" become patient
/// and id.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool letter = is_lower(c) || is_upper(c);
    const bool new_word = is_upper(c) && i > 0 && is_lower(name[i - 1]);
    if ((new_word || !(letter || is_digit(c))) && !words.back().empty()) words.emplace_back();
    if (is_upper(c))
      words.back() += static_cast<char>(c - 'A' + 'a');
    else if (letter || is_digit(c))
      words.back() += c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::ranges::find(words, word) != words.end();
}

/// Words for persons, such as patient. A column whose whole name is one of them identifies persons.
constexpr auto kAlone = std::to_array<std::string_view>(
    {"patient", "person", "individual", "subject", "participant", "respondent", "user", "customer",
     "client", "member", "household", "username", "login"});

/// Words that identify persons if a word for a key follows: employee_id does, but employee does
/// not, because it may be yes or no.
constexpr auto kWithKey = std::to_array<std::string_view>(
    {"people",   "employee", "emp",     "student",   "pupil",      "teacher",      "citizen",
     "resident", "family",   "donor",   "borrower",  "insured",    "enrollee",     "payer",
     "taxpayer", "voter",    "driver",  "passenger", "guest",      "subscriber",   "buyer",
     "player",   "worker",   "caller",  "holder",    "cardholder", "policyholder", "beneficiary",
     "reviewer", "author",   "account", "applicant", "candidate",  "panelist",     "owner",
     "pat",      "cust",     "subj"});

/// Words for personal numbers and addresses (such as mrn, ssn, email), each of which identifies a
/// person.
constexpr auto kNumbersOfPersons = std::to_array<std::string_view>(
    {"mrn", "ssn", "nhs", "npi", "nino", "email", "imsi", "msisdn"});

constexpr auto kKeys =
    std::to_array<std::string_view>({"id", "ids", "no", "nr", "num", "number", "key", "code",
                                     "uuid", "guid", "hash", "pseudonym", "ref", "identifier"});

}  // namespace

bool names_rows(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  return !words.empty() && (words.back() == "id" || words.back() == "uuid");
}

bool names_persons(std::string_view name) {
  std::vector<std::string> words = words_of(name);
  if (words.empty()) return false;
  if (is_one_of(words.front(), kNumbersOfPersons)) return words.size() <= 2;
  if (is_one_of(words.back(), kNumbersOfPersons)) return true;
  bool has_key = words.size() > 1 && is_one_of(words.back(), kKeys);
  if (has_key) words.pop_back();
  std::string& last = words.back();
  if (!has_key && last.size() > 2 && last.ends_with("id")) {
    last.resize(last.size() - 2);
    has_key = true;
  }
  if (has_key) return is_one_of(last, kAlone) || is_one_of(last, kWithKey);
  return words.size() == 1 && is_one_of(last, kAlone);
}

std::string column_of_persons(const TableSchema& schema) {
  for (const Column& c : schema.columns) {
    const bool unseen = std::holds_alternative<Unstated>(c.kind) ||
                        std::holds_alternative<Ignored>(c.kind) ||
                        std::holds_alternative<Id>(c.kind);
    if (unseen && names_persons(c.name)) return c.name;
  }
  return {};
}

std::vector<std::string> names_of(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const Column& c : columns) names.push_back(c.name);
  return names;
}

std::string near_column(std::string_view name, const std::vector<std::string>& columns) {
  std::vector<std::string> near = near_names(name, columns);
  if (near.empty()) return {};
  for (std::string& text : near) text = shown(text);
  return "; the nearest " + std::string(near.size() == 1 ? "is " : "are ") + listed(near);
}

std::string unit_keys(const TableSchema& schema) {
  const std::string column = column_of_persons(schema);
  return "unit = " + (column.empty() ? "\"COLUMN\"" : toml_text(column)) + " and max_rows";
}

}  // namespace cudp
