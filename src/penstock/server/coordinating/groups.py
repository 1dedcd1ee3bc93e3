"""Groups as a kind of coordinator: `__consumer_offsets`, its records, its settings. Groups have no effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from penstock.metadata.entities import CONFIG_GROUP
from penstock.model.ids import OFFSETS_TOPIC, Epoch, new_hyphenated_uuid
from penstock.protocol.disk.group_records import GROUP_RECORDS, group_record
from penstock.server.coordinating.records import Classes, RecordReader

if TYPE_CHECKING:
    from random import Random

    from penstock.coordinators.decision import Effect
    from penstock.coordinators.groups.settings import GroupSettings
    from penstock.coordinators.groups.shard import GroupShard
    from penstock.metadata.delta import Delta
    from penstock.metadata.image import ClusterImage
    from penstock.model.config.definition import ConfigValue
    from penstock.server.live_settings import LiveSettings


def _classes_of(number: int) -> Classes | None:
    return group_record(number) if number in GROUP_RECORDS else None


GROUP_READER: Final = RecordReader(_classes_of)


class GroupKind:
    """The kind of coordinator that looks after groups. Its code is imported when the first group comes."""

    name: Final = "groups"
    topic: Final = OFFSETS_TOPIC
    place: Final = "the offsets topic"
    reader: Final = GROUP_READER

    def __init__(self, settings: LiveSettings, random: Random) -> None:
        self._settings, self._random = settings, random
        self._image: ClusterImage | None = None
        self._group_settings: GroupSettings | None = None
        self._group_values: dict[str | None, Mapping[str, ConfigValue]] = {}
        settings.on_change(self._group_values.clear)

    def partition_of(self, key: str, partitions: int) -> int:
        from penstock.coordinators.home import home_partition

        return home_partition(key, partitions)

    def partitions_wanted(self) -> int:
        return self._settings.number("offsets.topic.num.partitions")

    def codec(self) -> int:
        return self._settings.number("offsets.topic.compression.codec")

    def commit_timeout_ms(self) -> int:
        return self._settings.number("offsets.commit.timeout.ms")

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        self._image = image
        if any(key.type == CONFIG_GROUP for key in delta.configs):
            self._group_values.clear()

    def new_shard(self, image: ClusterImage) -> GroupShard:
        from penstock.coordinators.groups.shard import GroupShard

        return GroupShard(self._settings_of_groups(), image, new_id=self._new_id)

    def carry_out(self, index: int, epoch: Epoch, effects: Sequence[Effect]) -> None:
        raise AssertionError("groups have no effects")

    def give_up(self, index: int) -> None:
        """There is nothing under way."""

    def _new_id(self) -> str:
        return new_hyphenated_uuid(self._random)

    def _settings_of_groups(self) -> GroupSettings:
        if self._group_settings is None:
            from penstock.coordinators.groups.settings import GroupSettings

            settings = self._settings
            self._group_settings = GroupSettings(settings.number, settings.text, settings.names, self.values_of)
        return self._group_settings

    def values_of(self, group_id: str) -> Mapping[str, ConfigValue]:
        """What is in force for one group. Kept until a config changes: heartbeats look at it.

        Nearly every group has no configs of its own, and those share one: ids of groups may be new every time.
        """
        assert self._image is not None, "groups come with an image"
        own = self._image.config(CONFIG_GROUP, group_id)
        kept_as = group_id if own else None
        values = self._group_values.get(kept_as)
        if values is None:
            from penstock.model.config.groups import group_values

            values = self._group_values[kept_as] = group_values(own, self._settings)
        return values
