// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/text.hpp>
#include <keyfold/fwd.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The typed errors of the core. Each derives from `Error`, carries what went wrong as public members, and
/// says in what() what to do next. Exceptions thrown by the user's own code are never wrapped.
namespace keyfold {

/// Base of every exception that keyfold throws on its own account.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `at()` was asked for a key that no row has.
class KeyNotFound : public Error {
 public:
  explicit KeyNotFound(std::string key_text)
      : Error("no row has the key " + key_text + "; use find() or contains() where a key may be absent"),
        key(std::move(key_text)) {}

  std::string key;
};

/// Two rows would have the same primary key once the write is done.
class DuplicateKey : public Error {
 public:
  DuplicateKey(const std::string& message, std::string index_name, std::string key_text, Position first,
               Position second)
      : Error(message),
        index(std::move(index_name)),
        key(std::move(key_text)),
        first_position(first),
        second_position(second) {}

  std::string index;        ///< names of the key's columns, as in "(sku, day)"
  std::string key;          ///< the key both rows claim
  Position first_position;  ///< source position of the one row; no_position for a row that stays in the table
  Position second_position;  ///< source position of the other row
};

/// Two source rows claim one row: both act on the same target row, or both bring the same new key.
class DuplicateSourceKey : public DuplicateKey {
 public:
  using DuplicateKey::DuplicateKey;
};

/// Two rows would be equal in a unique index once the write is done.
class UniqueViolation : public Error {
 public:
  UniqueViolation(const std::string& message, std::string index_name, std::string key_text, Position first,
                  Position second)
      : Error(message),
        index(std::move(index_name)),
        key(std::move(key_text)),
        first_position(first),
        second_position(second) {}

  std::string index;        ///< names of the index's columns
  std::string key;          ///< the values both rows claim
  Position first_position;  ///< source position of the one row; no_position for a row that stays in the table
  Position second_position;  ///< source position of the other row, or no_position
};

/// A row that came in with replace_where() does not meet its condition.
class ReplaceWhereMismatch : public Error {
 public:
  ReplaceWhereMismatch(const std::string& message, std::string condition_text, std::string key_text,
                       Position row_position)
      : Error(message),
        condition(std::move(condition_text)),
        key(std::move(key_text)),
        position(row_position) {}

  std::string condition;  ///< as history would have recorded it
  std::string key;
  Position position;  ///< source position of the first such row
};

/// A key part is NaN, which no lookup could ever find again.
class InvalidKey : public Error {
 public:
  InvalidKey(std::string column_name, Position row_position)
      : Error("the key part '" + column_name + "' is NaN" + at(row_position) +
              "; a key must equal itself: filter such rows out or give them another key"),
        column(std::move(column_name)),
        position(row_position) {}

  std::string column;
  Position position;  ///< source position of the row, or no_position

 private:
  static std::string at(Position position) {
    return position == no_position ? std::string() : " in source row " + std::to_string(position);
  }
};

/// The sequence of a change event is absent or NaN, so that it is neither before nor after another one.
class InvalidSequence : public Error {
 public:
  InvalidSequence(std::string column_name, Position row_position, bool is_nan)
      : Error("the sequence '" + column_name + "' of source row " + std::to_string(row_position) +
              (is_nan ? " is NaN" : " is NULL") +
              "; every change event needs a sequence that can be compared: filter such events out or give "
              "them one"),
        column(std::move(column_name)),
        position(row_position) {}

  std::string column;
  Position position;  ///< source position of the event
};

/// Two change events of one key have the same sequence, and the feed says on_tie(reject).
class SequenceTie : public Error {
 public:
  SequenceTie(std::string key_text, std::string sequence_text, Position first, Position second)
      : Error((first == no_position ? "an earlier event" : "source row " + std::to_string(first)) +
              " and source row " + std::to_string(second) + " both change the row with key " + key_text +
              " at the sequence " + sequence_text +
              "; add a member to sequence_by<>() that tells them apart, or leave out on_tie(reject) so that "
              "the later one wins"),
        key(std::move(key_text)),
        sequence(std::move(sequence_text)),
        first_position(first),
        second_position(second) {}

  std::string key;          ///< "every key" if both truncate the table
  std::string sequence;     ///< the sequence they share, as text
  Position first_position;  ///< source position; no_position for an event of an earlier feed
  Position second_position;
};

/// The table was fed with change events of another kind before: another type of sequence, or the other SCD
/// type. What is remembered of those events says nothing about these.
class FeedMismatch : public Error {
 public:
  FeedMismatch(std::string remembered_feeds, std::string this_feed)
      : Error("this table was fed with events of " + remembered_feeds + ", and these are of " + this_feed +
              "; sequence its feeds alike, or load this one into a table of its own"),
        remembered(std::move(remembered_feeds)),
        given(std::move(this_feed)) {}

  std::string remembered;  ///< "current rows by int64", or "history rows by ..."
  std::string given;       ///< likewise; types as docs/file-format.md writes them
};

/// A `raise("message")` clause fired.
class ClauseRaised : public Error {
 public:
  ClauseRaised(const std::string& raised, std::string key_text, Position row_position)
      : Error(raised + " (raised by a clause for the row with key " + key_text + ")"),
        message(raised),
        key(std::move(key_text)),
        position(row_position) {}

  std::string message;  ///< the text given to raise()
  std::string key;
  Position position;  ///< source position; no_position for a clause of when_not_matched_by_source
};

/// A row would violate a constraint of the table, see Table::require().
class CheckViolation : public Error {
 public:
  CheckViolation(const std::string& message, std::string constraint_name, std::string condition_text,
                 std::string key_text, Position row_position)
      : Error(message),
        constraint(std::move(constraint_name)),
        condition(std::move(condition_text)),
        key(std::move(key_text)),
        position(row_position) {}

  std::string constraint;
  std::string condition;
  std::string key;
  Position position;  ///< source position of the row, or no_position
};

/// A constraint of this name is there already.
class ConstraintExists : public Error {
 public:
  ConstraintExists(std::string constraint_name, const std::string& condition)
      : Error("the table has a constraint '" + constraint_name + "' already, " + condition +
              "; unrequire() it first, or choose another name"),
        constraint(std::move(constraint_name)) {}

  std::string constraint;
};

/// No constraint has this name.
class ConstraintNotFound : public Error {
 public:
  explicit ConstraintNotFound(std::string constraint_name)
      : Error("the table has no constraint '" + constraint_name + "'; constraints() lists them"),
        constraint(std::move(constraint_name)) {}

  std::string constraint;
};

/// An assignment would not fit the type of its column.
class ValueOutOfRange final : public Error {
 public:
  ValueOutOfRange(std::string column_name, std::string value_text, std::string key_text = {},
                  Position row_position = no_position)
      : Error("the value " + value_text + of_row(key_text, row_position) + " does not fit column '" +
              column_name + "'; widen the column or limit the value in the assignment"),
        column(std::move(column_name)),
        value(std::move(value_text)),
        key(std::move(key_text)),
        position(row_position) {}

  std::string column;
  std::string value;  ///< as text
  std::string key;    ///< of the row that it is for; empty where no row was found or made yet
  Position position;  ///< source position of the row, or no_position

 private:
  static std::string of_row(const std::string& key, Position position) {
    std::string out;
    if (!key.empty()) out += " for the row with key " + key;
    if (position != no_position) out += " from source row " + std::to_string(position);
    return out;
  }
};

/// A condition, assignment or callback wrote to the table whose write, or read(), it is part of.
class ReentrantWrite : public Error {
 public:
  ReentrantWrite()
      : Error(
            "this table is in the middle of another write, or is being read by this thread; conditions, "
            "assignments, source ranges and what SharedTable::read() is given may read the table but not "
            "write to it") {}
};

/// A version that can no longer be read was asked for.
class VersionExpired : public Error {
 public:
  VersionExpired(Version version, Version oldest_version)
      : VersionExpired("version " + std::to_string(version) + " has", version, oldest_version) {}
  VersionExpired(Timestamp time, Version oldest_version)
      : VersionExpired("the version at " + detail::literal_text(time) + " has", 0, oldest_version) {}

  /// The changes of a commit went with the version before it, while its own version is kept by a tag.
  static VersionExpired of_changes(Version version, Version oldest_version) {
    return {"what version " + std::to_string(version) + " has changed cannot be told, since version " +
                std::to_string(version - 1) + " has",
            version - 1, oldest_version};
  }

  Version requested;  ///< 0 when a time was asked for
  Version oldest;     ///< from here on every version is readable

 private:
  VersionExpired(const std::string& what, Version version, Version oldest_version)
      : Error(
            what + " expired; the oldest version that is kept, beside tagged ones, is " +
            std::to_string(oldest_version) +
            ": read that or a later one. To keep a version, tag() it before it expires; to keep more, change "
            "the retention or what is given to expire()"),
        requested(version),
        oldest(oldest_version) {}
};

/// A version, or the version at a time, that never was.
class VersionNotFound : public Error {
 public:
  VersionNotFound(Version version, Version latest_version)
      : Error((version == 0 ? "no commit has made version 0, the empty table"
                            : "there is no version " + std::to_string(version)) +
              "; the latest is " + std::to_string(latest_version) +
              ", and history() has those that are kept"),
        requested(version),
        latest(latest_version) {}
  VersionNotFound(Timestamp time, Version latest_version)
      : Error("there was no version yet at " + detail::literal_text(time) + "; the latest version is " +
              std::to_string(latest_version) + ", and history() has the time of the first"),
        requested(0),
        latest(latest_version) {}

  Version requested;  ///< 0 when a time was asked for
  Version latest;
};

/// No version is tagged with this name.
class TagNotFound : public Error {
 public:
  explicit TagNotFound(std::string tag_name)
      : Error("no version is tagged '" + tag_name + "'; tags() lists the tags"), name(std::move(tag_name)) {}

  std::string name;
};

/// The name is the tag of another version.
class TagExists : public Error {
 public:
  TagExists(std::string tag_name, Version tagged_version)
      : Error("the tag '" + tag_name + "' is on version " + std::to_string(tagged_version) +
              " already; untag() it first, or choose another name"),
        name(std::move(tag_name)),
        version(tagged_version) {}

  std::string name;
  Version version;
};

/// Changes do not fit the rows they meet: apply() found rows other than its before images, or undo() rows
/// that a later commit has touched. Nothing was changed.
class ChangeConflict : public Error {
 public:
  /// Of apply().
  explicit ChangeConflict(std::vector<std::string> conflicting)
      : Error("the changes do not fit " + rows_text(conflicting) +
              " as the table is now; compare the rows named in `keys`, then apply the changes that still "
              "hold"),
        keys(std::move(conflicting)) {}
  /// Of undo().
  ChangeConflict(std::vector<std::string> conflicting, Version undone_version)
      : Error("version " + std::to_string(undone_version) +
              " cannot be undone: later versions have changed " + rows_text(conflicting) +
              ", too; history_of() tells which: undo those first, or write the rows named in `keys` as they "
              "should be"),
        keys(std::move(conflicting)),
        undone(undone_version) {}

  std::vector<std::string> keys;  ///< of all conflicting changes, in the order of the changes
  Version undone = 0;             ///< that undo() was asked to revert; 0 for apply()

 private:
  static std::string rows_text(const std::vector<std::string>& keys) {
    std::string text = "the row with key " + keys.front();
    if (keys.size() > 1) text += " and " + std::to_string(keys.size() - 1) + " more";
    return text;
  }
};

/// A view, a result or a transaction was used after its table had gone, or a result of a write in a
/// transaction after the end of that one.
class TableGone : public Error {
 public:
  /// `what` has lost its table: "view".
  TableGone(const std::string& what, const std::string& what_to_do)
      : Error("the table of this " + what + " no longer exists, or another one was assigned to it; " +
              what_to_do) {}
};

/// A transaction was used after the table had changed under it: what it has read may not be so any more.
class TransactionConflict : public Error {
 public:
  TransactionConflict(Version version_at_start, Version latest_version)
      : Error((version_at_start == latest_version
                   ? "the table, still at version " + std::to_string(latest_version) +
                         ", has remembered a load of change events since the transaction began"
                   : "the table was at version " + std::to_string(version_at_start) +
                         " when the transaction began and is at version " + std::to_string(latest_version) +
                         " now") +
              "; begin a new transaction and do its writes again"),
        started(version_at_start),
        latest(latest_version) {}

  Version started;
  Version latest;  ///< equal to `started` after a load of change events that made no version
};

/// A transaction was used after commit() or rollback().
class TransactionEnded : public Error {
 public:
  TransactionEnded() : Error("this transaction has been committed or rolled back; begin a new one") {}
};

/// Sequences of apply_changes() were to be saved, or written by a store, and have a type that files cannot
/// have: a pointer, or a class that is neither described nor has a serialize().
class UnsavableSequence : public Error {
 public:
  UnsavableSequence()
      : Error(
            "apply_changes() has sequenced this table by a type that cannot be saved; describe that class "
            "with "
            "BOOST_DESCRIBE_STRUCT or columns_of, give it a serialize(), or sequence by its members") {}
};

}  // namespace keyfold
