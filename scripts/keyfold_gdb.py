# Pretty printers for gdb. scripts/embed-gdb-printers puts them into include/keyfold/detail/gdb_printers.hpp, so that gdb
# finds them in the program. Without a program that has them: `source` this file.
import datetime
import re

import gdb
import gdb.printing


# How things lie in memory. Everything that depends on it is in this part.

def base(value, name):
    # The base class subobject, at any depth, whose class template has this name; None if there is none.
    for field in value.type.fields():
        if field.is_base_class:
            if field.type.name.split('<')[0] == name:
                return value.cast(field.type)
            found = base(value.cast(field.type), name)
            if found is not None:
                return found
    return None


def pointee(pointer, target):
    # What a smart pointer points to, since its first word is the address; None if null.
    plain = pointer.address.cast(target.pointer().pointer()).dereference()
    return plain.dereference() if int(plain) else None


def owners(weak_pointer):
    # Not through the counter itself: gdb would look for its dynamic type, and complain where it finds none.
    counter = weak_pointer['_M_refcount']['_M_pi']
    field = next(field for field in counter.type.target().fields() if field.name == '_M_use_count')
    address = int(counter) + field.bitpos // 8
    return int(gdb.Value(address).cast(field.type.pointer()).dereference())


def standard_printer(container):
    printer = gdb.default_visualizer(container)
    if printer is None:
        raise gdb.GdbError('keyfold: the pretty printers of the standard library are not loaded')
    return printer


def elements(container):
    # The elements of a container of the standard library, whose own printer knows where they are. Before it is
    # constructed there may be no end of them: none may be collected without a look at count_of().
    return (child[1] for child in standard_printer(container).children())


def count_of(container):
    # "std::vector of length 2, capacity 4", "std::deque with 2 elements"
    number = re.search(r'(?:length|with) (\d+)', standard_printer(container).to_string() or '')
    return int(number.group(1)) if number else 0


def collected(container):
    if count_of(container) > 1 << 24:
        raise gdb.GdbError('keyfold: this has not been constructed yet')
    return list(elements(container))


def last(deque):
    # None if it is empty.
    start, finish = deque['_M_impl']['_M_start'], deque['_M_impl']['_M_finish']
    if start['_M_cur'] == finish['_M_cur']:
        return None
    if finish['_M_cur'] != finish['_M_first']:
        return (finish['_M_cur'] - 1).dereference()
    node = (finish['_M_node'] - 1).dereference()
    return (node + (finish['_M_last'] - finish['_M_first']) - 1).dereference()


def optional(value):
    # What a std::optional holds, or None.
    return next(iter(elements(value)), None)


def scalar(value):
    # The number within a time point.
    while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value[value.type.strip_typedefs().fields()[0]]
    return int(value)


def held(holder):
    # The row in a Holder, which keeps it in place or behind a pointer.
    row = holder.type.strip_typedefs().unqualified().template_argument(0)
    inside = holder['row_']
    if inside.type.strip_typedefs().unqualified() == row.strip_typedefs().unqualified():
        return inside
    return pointee(inside, row)


def header_of(rows):
    return base(rows, 'boost::multi_index::detail::header_holder')['member']


def sequence_of(rows):
    # The links of the header, where the first index of a Boost.MultiIndex container is a sequence; else None.
    return base(header_of(rows).dereference(), 'boost::multi_index::detail::sequenced_index_node_impl')


def nodes(rows):
    # The nodes of such a container in the order of its first index, a sequence or a red-black tree.
    header, sequence = header_of(rows), sequence_of(rows)
    if sequence is not None:
        link = sequence['next_']
        while int(link) != int(sequence.address):
            yield link.cast(header.type)
            link = link['next_']
        return
    ordered = base(header.dereference(), 'boost::multi_index::detail::ordered_index_node_impl')
    root = gdb.Value(int(ordered['parentcolor_']) & ~1).cast(ordered.address.type)
    path, link = [], root
    while path or int(link):
        while int(link):
            path.append(link)
            link = link['left_']
        link = path.pop()
        yield link.cast(header.type)
        link = link['right_']


def slot_of(node):
    inner = base(node.dereference(), 'boost::multi_index::detail::index_node_base')
    return inner.address.cast(inner.type.template_argument(0).pointer()).dereference()


def slots(core):
    return (slot_of(node) for node in nodes(core['rows']))


def log_of(core):
    return pointee(core['log'], core['log'].type.template_argument(0))


def of_row(class_name, value):
    # A class template of keyfold's for the same type of row as that of another one.
    row = value.type.strip_typedefs().unqualified().template_argument(0)
    return gdb.lookup_type('keyfold::detail::%s<%s>' % (class_name, row.unqualified()))


def round_up(size, to):
    return (size + to - 1) // to * to


class Entry:
    # An entry of the log: one change of one key. Behind it in memory a link to the one before, unless it is the
    # first of its key, and the row before, if there was one.
    INSERT, UPDATE, ERASE, REKEY_OUT, REKEY_IN = range(5)

    def __init__(self, value):
        self.value = value
        self.holder = of_row('Holder', value)
        stamp = int(value['stamp_'])
        self.kind, self.is_first, self.version = stamp & 7, bool(stamp & 8), stamp >> 4
        self.has_before = self.kind not in (self.INSERT, self.REKEY_IN)
        self.leaves_row = self.kind not in (self.ERASE, self.REKEY_OUT)
        self.newer = int(value['newer_'])

    def at(self, address, kind):
        return gdb.Value(address).cast(kind.pointer()).dereference()

    def link_end(self):
        return self.value.type.sizeof + self.value.address.type.sizeof

    def before_offset(self):
        return round_up(self.link_end(), self.holder.alignof)

    def size(self):
        if self.is_first:
            size = self.value.type.sizeof
        else:
            size = self.before_offset() + self.holder.sizeof if self.has_before else self.link_end()
        return round_up(size, max(self.value.type.alignof, self.holder.alignof))

    def before(self):
        return held(self.at(int(self.value.address) + self.before_offset(), self.holder))

    def after(self):
        if self.newer & 1:
            return held(self.at(self.newer & ~1, of_row('Slot', self.value))['row'])
        return Entry(self.at(self.newer, self.value.type)).before()

    def older(self):
        if self.is_first:
            return None
        return entry_at(self.at(int(self.value.address) + self.value.type.sizeof, self.value.type.pointer()))


def entry_at(pointer):
    return Entry(pointer.dereference()) if int(pointer) else None


def entries(block):
    pointer = of_row('LogEntry', block).pointer()
    at = int(block['memory_']['data_'])
    counts = block['counts_']
    for _ in range(int(counts['firsts']) + int(counts['bare']) + int(counts['images'])):
        entry = entry_at(gdb.Value(at).cast(pointer))
        yield entry
        at += entry.size()


# What they mean, in the words of the library.

def life_at(row, newest, version):
    # As detail::life_at().
    while newest is not None and newest.version > version:
        if not newest.has_before or not newest.leaves_row:
            return None
        row, newest = newest.before(), newest.older()
    return row


def readable(log, version):
    return version >= int(log['oldest']) or version in (int(pinned) for pinned in elements(log['pinned']))


def rows_at(core, version):
    # The rows of a version: those that are still there, and those that are not, by their order; in a table that is in
    # the order of its key they come last, since only the program knows that order.
    log = log_of(core)
    gone = []
    blocks = collected(log['retired']) + [commit['block'] for commit in collected(log['records'])]
    for block in blocks:
        for entry in entries(block):
            if entry.version > version and not entry.leaves_row:
                row = life_at(entry.before(), entry.older(), version)
                if row is not None:
                    gone.append((entry.newer, row))
    gone.sort(key=lambda each: each[0])
    by_insertion = sequence_of(core['rows']) is not None
    for slot in slots(core):
        row = life_at(held(slot['row']), entry_at(slot['newest']), version)
        if row is not None:
            while by_insertion and gone and gone[0][0] < int(slot['order']):
                yield gone.pop(0)[1]
            yield row
    for _, row in gone:
        yield row


def numbers_in(metrics):
    return [(field.name, int(metrics[field])) for field in metrics.type.unqualified().fields()]


def unpacked(metrics):
    # The numbers in a PackedMetrics: each in a byte, or all of them elsewhere.
    kind = metrics['large_'].type.strip_typedefs().template_argument(0).unqualified()
    large = pointee(metrics['large_'], kind)
    if large is not None:
        return numbers_in(large)
    packed = int(metrics['low_']) | int(metrics['high_']) << 64
    return [(field.name, packed >> 8 * place & 255) for place, field in enumerate(kind.fields())]


def counts(numbers):
    # The two parts of `updated` and `deleted` that are left out are the rest of them.
    return ' '.join('%s=%d' % number for number in numbers if number[1] and not number[0].startswith('matched_'))


def shared_text(shared):
    # The string of a SharedText, or None.
    address = int(shared['at_'])
    if address == 0:
        return None
    kind = gdb.lookup_type('keyfold::detail::SharedText::Shared')
    counted = gdb.Value(address & ~1).cast(kind.pointer()).dereference()['text']
    return counted if address & 1 else gdb.Value(address).cast(counted.type.pointer()).dereference()


def text(value):
    return value.format_string(pretty_structs=False)


def change_text(before, after):
    if before is None:
        return 'insert ' + text(after)
    if after is None:
        return 'erase ' + text(before)
    columns = []
    for field in before.type.strip_typedefs().fields():
        if hasattr(field, 'bitpos'):
            old, new = text(before[field]), text(after[field])
            columns.append('%s = %s' % (field.name, old if old == new else old + ' -> ' + new))
    return 'update {%s}' % ', '.join(columns)


def log_changes(block):
    pending = None
    for entry in entries(block):
        if entry.kind == Entry.REKEY_OUT:
            pending = entry.before()
        elif entry.kind == Entry.REKEY_IN:
            yield change_text(pending, entry.after())
        else:
            yield change_text(entry.before() if entry.has_before else None,
                              entry.after() if entry.leaves_row else None)


def time_text(timestamp):
    microseconds = scalar(timestamp)
    try:
        time = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=microseconds)
        return time.isoformat(' ') + ' UTC'
    except OverflowError:
        return '%d microseconds since 1970' % microseconds


def commit_text(record):
    operation = text(record['operation']).strip('"')
    return ('version %d %s %s' % (int(record['version']), operation, counts(unpacked(record['metrics'])))).rstrip()


def plural(count, noun):
    return '%d %s%s' % (count, noun, '' if count == 1 else 's')


# The printers.

class Printer:
    def __init__(self, value):
        self.value = value


class Range(Printer):
    def display_hint(self):
        return 'array'

    def children(self):
        return (('[%d]' % index, element) for index, element in enumerate(self.elements()))


class Table(Range):
    def __init__(self, value):
        super().__init__(value)
        self.core = pointee(value['core_'], value['core_'].type.template_argument(0))

    def to_string(self):
        if self.core is None:
            return 'keyfold::Table that was moved from'
        commit = last(log_of(self.core)['records'])
        version = int(commit['version']) if commit is not None else 0
        return 'keyfold::Table of %s at version %d' % (plural(int(self.core['rows']['node_count']), 'row'), version)

    def elements(self):
        return (held(slot['row']) for slot in slots(self.core)) if self.core is not None else ()


class AsOfView(Range):
    def __init__(self, value):
        super().__init__(value)
        self.version = int(value['version_'])
        self.trouble = None
        if owners(value['log_']) == 0:
            self.trouble = ', whose table is gone'
        elif not readable(log_of(value['core_']), self.version):
            self.trouble = ', which has expired'

    def to_string(self):
        return 'keyfold::AsOfView of version %d%s' % (self.version, self.trouble or '')

    def elements(self):
        return () if self.trouble else rows_at(self.value['core_'].dereference(), self.version)


class History(Range):
    def to_string(self):
        return 'keyfold::History of ' + plural(count_of(self.records()) if self.has_log() else 0, 'commit')

    def elements(self):
        return (commit_text(record) for record in elements(self.records())) if self.has_log() else ()

    def has_log(self):
        return int(self.value['log_']) != 0

    def records(self):
        return self.value['log_']['records']


class Commit(Printer):
    def __init__(self, value):
        self.record = value['record_'].dereference()

    def to_string(self):
        return 'keyfold::Commit of ' + commit_text(self.record)

    def children(self):
        yield 'timestamp', time_text(self.record['timestamp'])
        for name in 'parameters', 'metadata':
            words = shared_text(self.record[name])
            if words is not None:
                yield name, words
        for index, change in enumerate(log_changes(self.record['block'])):
            yield 'changes[%d]' % index, change


class Change(Printer):
    def to_string(self):
        return change_text(optional(self.value['before_']), optional(self.value['after_']))


class FeedChange(Change):
    def to_string(self):
        return 'version %d, %s' % (int(self.value['version_']), super().to_string())


class ChangeSet(Range):
    def to_string(self):
        return 'keyfold::ChangeSet of ' + plural(count_of(self.value['changes_']), 'change')

    def elements(self):
        return elements(self.value['changes_'])


class Metrics(Printer):
    def to_string(self):
        return 'keyfold::Metrics ' + (counts(numbers_in(self.value)) or 'of nothing')


class MergeResult(Printer):
    def to_string(self):
        written = self.value['written_']
        made = 'version %d' % int(written['version']) if written['committed'] else 'no new version'
        return ('keyfold::MergeResult: %s %s' % (made, counts(numbers_in(written['metrics'])))).rstrip()


class RowIterator(Printer):
    def to_string(self):
        node = self.value['base_']['node']
        return '-> ' + text(held(slot_of(node)['row'])) if int(node) else 'of no table'


collection = gdb.printing.RegexpCollectionPrettyPrinter('keyfold')
for printer in (Table, AsOfView, History, Commit, Change, FeedChange, ChangeSet, MergeResult, RowIterator):
    collection.add_printer(printer.__name__, '^keyfold::%s<.*>$' % printer.__name__, printer)
collection.add_printer('Metrics', '^keyfold::Metrics$', Metrics)
gdb.printing.register_pretty_printer(gdb.current_objfile(), collection, replace=True)
